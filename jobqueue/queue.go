package jobqueue

import (
	"context"
	"math"
	"reflect"
	"sync"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A Queue is a queue of jobs that are distinct by their key, which has type K.
// Any number of goroutines may use it. It must be made with [New] or
// [NewKeyed].
//
// All of its state is a [core] under one lock. What users pass in (key,
// priority, delays, observers) is called without it.
type Queue[K comparable, T any] struct {
	key      func(T) K
	wary     bool // a K may hold what cannot be compared
	priority func(T) int
	retry    async.Interval
	dead     func(T, error)
	observer func(Event[T])

	mu       sync.Mutex
	core     core[K, T]
	holders  map[context.Context]*holder[K, T] // by scope; of those that have not ended
	last     *holder[K, T]                     // who was looked for last
	settling holder[K, T]                      // of no scope: what has failed and is about to go back
	drains   []*async.Promise[struct{}]        // calls of Drain that wait
	timer    *time.Timer                       // readies the delayed; nil until needed
	armed    bool                              // the timer runs
	due      time.Duration                     // and fires then
}

// New returns a queue of jobs that are their own keys.
func New[T comparable](opts ...Option) *Queue[T, T] {
	return NewKeyed(func(job T) T { return job }, opts...)
}

// NewKeyed returns a queue of jobs that are distinct by what key returns for
// them. key must always return the same for a job. It is called with no lock
// held; if it panics, the call that it was called from does, and has changed
// nothing. A nil key panics, and so does an option about other jobs than T.
func NewKeyed[K comparable, T any](key func(T) K, opts ...Option) *Queue[K, T] {
	if key == nil {
		panic("jobqueue: NewKeyed with a nil key function")
	}
	var o options
	for _, opt := range opts {
		opt.apply(&o)
	}
	q := &Queue[K, T]{
		key:      key,
		wary:     mayNotCompare(reflect.TypeFor[K]()),
		priority: typed[func(T) int]("Priority", o.priority),
		retry:    o.retry,
		dead:     typed[func(T, error)]("MaxAttempts", o.dead),
		observer: typed[func(Event[T])]("Observe", o.observer),
		holders:  make(map[context.Context]*holder[K, T]),
	}
	q.core.init(o.rules)
	return q
}

// Add adds job to the end of the queue, or gives it to whoever has waited
// longest. It returns false, and nothing is changed, if a job with its key is
// queued or in progress (but see [WhileRunning]), the queue is at its
// [Capacity] or closed, or the key cannot be found again ([ErrKey]). Which of
// them it was, [Observe] tells. Add never blocks.
func (q *Queue[K, T]) Add(job T) bool { return q.AddAfter(0, job) }

// AddAfter adds job to the end of the queue d from now. Until then it is known:
// it cannot be added again, it can be removed, and it counts as queued, but it
// is not taken, and Drain does not wait for it. Otherwise it is as [Queue.Add].
// While jobs are delayed the queue has a timer, and no goroutine. A queue whose
// timer was made in a bubble of testing/synctest cannot be used outside it.
func (q *Queue[K, T]) AddAfter(d time.Duration, job T) bool {
	e := q.entry(job)
	q.mu.Lock()
	err := q.refusesLocked(&e)
	if err != nil && q.observer == nil {
		q.mu.Unlock() // no turn: it is half of what refusing a duplicate costs
		return false
	}
	var t turn[K, T]
	q.begin(&t)
	q.addLocked(&e, err, d, &t)
	q.unlock(&t)
	return err == nil
}

// AddAll adds the jobs in one step, in order: nobody sees some of them without
// the others, and whoever waits is served in the order of the jobs. It returns
// those that were rejected: two with the same key are duplicates, and a
// [Capacity] must have room for all of them, whoever waits.
func (q *Queue[K, T]) AddAll(jobs ...T) (rejected []T) {
	entries := make([]entry[K, T], len(jobs))
	for i, job := range jobs {
		entries[i] = q.entry(job)
	}
	var t turn[K, T]
	q.lock(&t)
	for i := range entries {
		err := q.refusesLocked(&entries[i])
		if q.addLocked(&entries[i], err, 0, &t); err != nil {
			rejected = append(rejected, jobs[i])
		}
	}
	q.unlock(&t)
	return rejected
}

// Remove removes the job with the given key that is queued or delayed, or the
// second run that was asked for ([RunAgain]). It does not touch a job in
// progress. It reports whether there was something to remove.
func (q *Queue[K, T]) Remove(key K) bool {
	if !q.usable(key) {
		return false
	}
	var t turn[K, T]
	q.lock(&t)
	job, ok := q.core.remove(key)
	if ok && q.observer != nil {
		t.tell(Event[T]{Kind: Removed, Job: job})
	}
	q.unlock(&t)
	return ok
}

// An entry is a job that is to be added, with what users' functions say of it.
type entry[K comparable, T any] struct {
	job  T
	key  K
	rank int64
	bad  bool // its key cannot be found again
}

func (q *Queue[K, T]) entry(job T) entry[K, T] {
	e := entry[K, T]{job: job, key: q.key(job)}
	e.bad = !q.usable(e.key)
	if q.priority != nil {
		e.rank = -max(int64(q.priority(job)), -math.MaxInt64)
	}
	return e
}

// refusesLocked returns why e is not accepted, nil if it is.
func (q *Queue[K, T]) refusesLocked(e *entry[K, T]) error {
	if e.bad {
		q.core.stats.Refused++
		return ErrKey
	}
	return q.core.refuses(e.key)
}

// addLocked adds e unless it is refused with err.
func (q *Queue[K, T]) addLocked(e *entry[K, T], err error, d time.Duration, t *turn[K, T]) {
	kind := Rejected
	if err == nil {
		kind = Added
		q.core.add(e.key, e.job, e.rank, after(t.time(), d), t.time())
	}
	if q.observer != nil {
		t.tell(Event[T]{Kind: kind, Job: e.job, Err: err})
	}
}

// usable reports whether key can be found in a map again.
func (q *Queue[K, T]) usable(key K) (ok bool) {
	if q.wary {
		defer func() { _ = recover() }()
	}
	return key == key
}

// mayNotCompare reports whether comparing values of t may panic.
func mayNotCompare(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Array:
		return mayNotCompare(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if mayNotCompare(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}
