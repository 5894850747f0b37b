package jobqueue

import (
	"reflect"
	"sync"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A Queue is a queue of jobs that are distinct by their key, which has type K.
// Any number of goroutines may use it. It must be made with [New] or
// [NewKeyed].
//
// Users' functions (key, priority, delays, observers) are called with no lock held,
// so they may use the queue.
type Queue[K comparable, T any] struct {
	key         func(T) K
	keyMayPanic bool // comparing two values of K may panic
	priority    func(T) int
	retry       async.Interval
	dead        func(T, error)
	observer    func(Event[T])

	mu      sync.Mutex
	core    core[K, T]
	holders holders[K, T]
	failing holder[K, T]  // of no scope: jobs whose run has failed, until they are settled
	drains  []*drainWait  // calls of Drain that wait
	timer   *time.Timer   // makes the delayed jobs ready; nil until needed
	armed   bool          // the timer is set
	due     time.Duration // armed: when the timer fires
}

// New returns a queue of jobs that are their own keys.
//
//	q := jobqueue.New[string](jobqueue.Capacity(1000))
func New[T comparable](opts ...Option) *Queue[T, T] {
	return NewKeyed(func(job T) T { return job }, opts...)
}

// NewKeyed returns a queue of jobs that are distinct by what key returns for them.
//
//	q := jobqueue.NewKeyed(func(job Job) string { return job.File })
//
// # Details
//
// key must always return the same for a job. key is called with no lock held; if it
// panics, the call that it was called from does, and has changed nothing. A nil key
// panics, and so does an option about other jobs than T.
func NewKeyed[K comparable, T any](key func(T) K, opts ...Option) *Queue[K, T] {
	if key == nil {
		panic("jobqueue: NewKeyed with a nil key function")
	}
	var o options
	for _, opt := range opts {
		opt.apply(&o)
	}
	q := &Queue[K, T]{
		key:         key,
		keyMayPanic: mayNotCompare(reflect.TypeFor[K]()),
		priority:    typed[func(T) int]("Priority", o.priority),
		retry:       o.retry,
		dead:        typed[func(T, error)]("MaxAttempts", o.dead),
		observer:    typed[func(Event[T])]("Observe", o.observer),
	}
	q.core.init(o.rules)
	q.holders.others.init()
	return q
}

// Add adds job to the end of the queue, or hands it to the call of Take that has
// waited longest.
//
//	accepted := q.Add("a.jpg")
//
// # Details
//
// Add returns false, and nothing is changed, if a job with its key is queued or in
// progress (but see [WhileRunning]), the queue is at its [Capacity] or closed, or the
// key cannot be found again ([ErrKey]). Which of them it was, [Observe] tells. Add
// never blocks.
func (q *Queue[K, T]) Add(job T) bool { return q.AddAfter(0, job) }

// AddAfter adds job to the end of the queue d from now.
//
//	accepted := q.AddAfter(time.Minute, "a.jpg")
//
// # Details
//
// Until then the job is known: it cannot be added again, it can be removed, and it
// counts as queued, but it is not taken, and Drain does not wait for it. Otherwise it
// is as [Queue.Add]. A job that is accepted while one of its key is in progress
// ([RunAgain]) keeps to its time unless that one goes back: then the retry takes it.
//
// While jobs are delayed the queue has a timer, and no goroutine. A queue whose timer
// was made in a bubble of testing/synctest cannot be used outside it.
func (q *Queue[K, T]) AddAfter(d time.Duration, job T) bool {
	e := q.entry(job)
	q.mu.Lock()
	err := q.refusesLocked(&e)
	if err != nil && q.observer == nil {
		q.mu.Unlock() // no turn: measured, that doubles the time of a duplicate
		return false
	}
	var t turn[K, T]
	q.begin(&t)
	q.addLocked(&e, err, d, &t)
	q.unlock(&t)
	return err == nil
}

// AddAll adds the jobs in one step, in order, and returns those that were rejected,
// in order.
//
//	rejected := q.AddAll("a.jpg", "b.jpg")
//
// # Details
//
// Nobody sees some of the jobs without the others, and waiting calls of Take are
// served in the order of the jobs. If two have the same key the second is a
// duplicate. The jobs count towards the [Capacity] before a waiting call of Take is
// handed any of them.
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

// Remove removes the job with the given key if it is queued or delayed, and reports
// whether there was something to remove.
//
//	removed := q.Remove("a.jpg")
//
// # Details
//
// If the job is in progress, Remove does not touch it, and removes the job that was
// added since ([RunAgain]).
func (q *Queue[K, T]) Remove(key K) bool {
	if !q.canFind(key) {
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
	job      T
	key      K
	badKey   bool // no map can find key again
	priority int
}

// entry asks users' functions about job, with no lock held.
func (q *Queue[K, T]) entry(job T) entry[K, T] {
	e := entry[K, T]{job: job, key: q.key(job)}
	e.badKey = !q.canFind(e.key)
	if q.priority != nil {
		e.priority = q.priority(job)
	}
	return e
}

// refusesLocked returns why e is not accepted, nil if it is.
func (q *Queue[K, T]) refusesLocked(e *entry[K, T]) error {
	if e.badKey {
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
		q.core.add(e.key, e.job, e.priority, after(t.time(), d), t.time())
	}
	if q.observer != nil {
		t.tell(Event[T]{Kind: kind, Job: e.job, Err: err})
	}
}

// canFind reports whether a map can find key again: it is comparable, and equal
// to itself.
func (q *Queue[K, T]) canFind(key K) bool {
	if q.keyMayPanic {
		return comparesAsEqual(key)
	}
	return key == key
}

// comparesAsEqual reports whether key is equal to itself, where that may panic.
func comparesAsEqual[K comparable](key K) (ok bool) {
	defer func() { _ = recover() }() // then ok is false
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
