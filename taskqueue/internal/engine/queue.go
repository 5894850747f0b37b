package engine

import (
	"container/heap"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
)

// meta is what is stored of a queue as a whole.
type meta struct {
	Settings  taskqueue.Settings          `json:"settings"`
	Counts    map[taskqueue.Counter]int64 `json:"counts"`
	States    map[taskqueue.State]int64   `json:"states"` // as stored: due or not is not told apart
	LastToken int64                       `json:"last_token"`
}

// A queue is the part of a queue that is in memory. Only what runs inside DB.Do
// uses it.
//
// Leases are here alone, by the monotonic clock of the process: a jump of the clock
// ends none, and no clock has to be stored.
type queue struct {
	name     string
	meta     meta
	stored   bool // it is in the store; if not, it has only been asked for tasks
	dirty    bool // meta is to be written before the step is made durable
	sooner   bool // those who wait are to be woken when the step is durable
	full     bool // a claim got less because of Settings.Concurrency, and no lease was given back since
	leases   leaseHeap
	byID     map[string]*lease
	claims   map[string]*lastClaim // by worker
	lastStep time.Time             // of a claim, an extension or a settlement
	gaps     []gap                 // between steps, those that may matter yet: the later the shorter
	counted  counted               // what is due, for Stats
	claiming *taskqueue.Claimed    // while a claim is made: it tells what becomes a dead letter by it

	allowance float64 // of claims, under a rate
	allowedAt time.Time
}

// A lease is the time that a worker has for a run.
type lease struct {
	id     string
	token  int64
	worker string
	from   time.Time // when it was given or extended
	end    time.Time
	length time.Duration
	spared bool // it has run out, and got its length once more because of a gap
	index  int  // in the heap
}

// A gap is a time in which no worker has called.
type gap struct {
	length time.Duration
	end    time.Time
}

// A lastClaim is the last claim of a worker, to be answered again if it is repeated.
type lastClaim struct {
	nonce string
	refs  []taskqueue.Ref
	at    time.Time
}

func newQueue(name string) *queue {
	return &queue{
		name:   name,
		meta:   meta{Counts: map[taskqueue.Counter]int64{}, States: map[taskqueue.State]int64{}},
		byID:   map[string]*lease{},
		claims: map[string]*lastClaim{},
	}
}

func (q *queue) count(c taskqueue.Counter, n int) {
	if n != 0 {
		q.meta.Counts[c] += int64(n)
		q.dirty = true
	}
}

// flush writes the meta of q if it has changed.
func (q *queue) flush(tx Tx) {
	if q.dirty {
		b, err := json.Marshal(q.meta)
		if err != nil {
			panic(err)
		}
		tx.Put(key(keyQueue, q.name), b)
		q.dirty, q.stored = false, true
	}
}

// restore reads a queue as it was left. Everything that ran then has lost its
// worker, or the worker has lost the store: its lease has run out.
func restore(tx Tx, name string, stored []byte, now time.Time) (*queue, error) {
	q := newQueue(name)
	q.stored = true
	if err := json.Unmarshal(stored, &q.meta); err != nil {
		return nil, fmt.Errorf("taskqueue: what is stored of queue %q cannot be read: %w", name, err)
	}
	scan(tx, key(keyRunning, name), func(id, _ []byte) bool {
		l := &lease{id: string(id), end: now}
		if r, _ := load(tx, name, l.id); r != nil { // else it is an orphan, which the first claim finds
			l.token, l.worker = r.Token, r.Worker
		}
		q.lend(l)
		return true
	})
	return q, nil
}

func (q *queue) lend(l *lease) {
	heap.Push(&q.leases, l)
	q.byID[l.id] = l
}

// giveBack ends the lease of a task, if there is one.
func (q *queue) giveBack(id string) {
	if l := q.byID[id]; l != nil {
		heap.Remove(&q.leases, l.index)
		delete(q.byID, id)
	}
}

func (q *queue) extend(l *lease, now time.Time, length time.Duration) {
	l.from, l.end, l.length, l.spared = now, now.Add(length), length, false
	heap.Fix(&q.leases, l.index)
}

// minGap is the shortest gap that is noted. Leases shorter than three of them are not
// spared.
const minGap = time.Millisecond

// step notes that a worker has called. A gap is kept until there is one behind it that
// was as long, or no lease is left that it may matter for: those are shorter than
// three times the gap. So there are never many.
func (q *queue) step(now time.Time) {
	length := now.Sub(q.lastStep)
	first := q.lastStep.IsZero()
	q.lastStep = now
	if first || length < minGap {
		return
	}
	q.gaps = slices.DeleteFunc(q.gaps, func(g gap) bool { return g.length <= length || now.Sub(g.end) > 3*g.length })
	q.gaps = append(q.gaps, gap{length, now})
}

// spare gives a lease that has run out its length once more, counted from the end of
// a gap that was longer than a third of it: the worker could not call, or we could
// not hear it, so its silence does not mean that it has crashed. Once only: where
// nobody calls often enough there is always a gap.
func (q *queue) spare(l *lease, now time.Time) bool {
	var end time.Time
	for _, g := range q.gaps {
		if g.length > l.length/3 && g.end.After(l.from) {
			end = g.end.Add(l.length)
		}
	}
	if l.spared || !end.After(now) {
		return false
	}
	l.end, l.spared = end, true
	heap.Fix(&q.leases, l.index)
	return true
}

// allowed returns how many of max tasks may be claimed now, and when the next may
// be, if that is fewer.
func (q *queue) allowed(now time.Time, most int) (n int, next time.Time) {
	s := q.meta.Settings
	n = most
	if s.Concurrency > 0 {
		n = min(n, max(s.Concurrency-len(q.leases), 0))
	}
	if s.Rate > 0 {
		burst := float64(max(s.Burst, 1))
		if q.allowedAt.IsZero() {
			q.allowance = burst
		}
		q.allowance = min(burst, q.allowance+now.Sub(q.allowedAt).Seconds()*s.Rate)
		q.allowedAt = now
		if n > int(q.allowance) {
			n = int(q.allowance)
			missing := float64(n+1) - q.allowance
			next = now.Add(time.Duration(missing/s.Rate*float64(time.Second)) + time.Microsecond) // rounded up: a claim at that time gets one
		}
	}
	return n, next
}

// A leaseHeap has the lease that ends first on top.
type leaseHeap []*lease

func (h leaseHeap) Len() int           { return len(h) }
func (h leaseHeap) Less(i, j int) bool { return h[i].end.Before(h[j].end) }
func (h leaseHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *leaseHeap) Push(x any) {
	l := x.(*lease)
	l.index = len(*h)
	*h = append(*h, l)
}
func (h *leaseHeap) Pop() any {
	old := *h
	l := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return l
}
