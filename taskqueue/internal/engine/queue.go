package engine

import (
	"container/heap"
	"encoding/json"
	"fmt"
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
	dirty    bool // meta is to be written before the step is made durable
	leases   leaseHeap
	byID     map[string]*lease
	claims   map[string]*lastClaim // by worker
	lastStep time.Time             // of a claim, an extension or a settlement
	shortest time.Duration         // no lease is shorter; 0 if there is none

	allowance float64 // of claims, under a rate
	allowedAt time.Time
}

// A lease is the time that a worker has for a run.
type lease struct {
	id     string
	token  int64
	worker string
	end    time.Time
	length time.Duration
	index  int // in the heap
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
		q.dirty = false
	}
}

// restore reads a queue as it was left. Everything that ran then has lost its
// worker, or the worker has lost the store: its lease has run out.
func restore(tx Tx, name string, stored []byte, now time.Time) (*queue, error) {
	q := newQueue(name)
	if err := json.Unmarshal(stored, &q.meta); err != nil {
		return nil, fmt.Errorf("taskqueue: what is stored of queue %q cannot be read: %w", name, err)
	}
	var failed error
	scan(tx, key(keyRunning, name), func(id, _ []byte) bool {
		r, err := load(tx, name, string(id))
		if err != nil || r == nil {
			failed = err
			return err == nil
		}
		q.lend(&lease{id: r.ID, token: r.Token, worker: r.Worker, end: now})
		return true
	})
	return q, failed
}

func (q *queue) lend(l *lease) {
	heap.Push(&q.leases, l)
	q.byID[l.id] = l
	q.notShorter(l.length)
}

func (q *queue) notShorter(length time.Duration) {
	if len(q.leases) == 1 || length < q.shortest {
		q.shortest = length
	}
}

// giveBack ends the lease of a task, if there is one.
func (q *queue) giveBack(id string) {
	if l := q.byID[id]; l != nil {
		heap.Remove(&q.leases, l.index)
		delete(q.byID, id)
	}
}

func (q *queue) extend(l *lease, now time.Time, length time.Duration) {
	l.end, l.length = now.Add(length), length
	heap.Fix(&q.leases, l.index)
	q.notShorter(length)
}

// step notes that a worker has called. After a gap that is longer than a third of a
// lease the workers could not call, or we could not hear them: all leases get their
// length once more, so that no run is taken for a crash because of that.
func (q *queue) step(now time.Time) {
	gap := now.Sub(q.lastStep)
	first := q.lastStep.IsZero()
	q.lastStep = now
	if first || gap <= q.shortest/3 {
		return
	}
	for _, l := range q.leases {
		if l.length > 0 && gap > l.length/3 {
			l.end = l.end.Add(l.length)
		}
	}
	heap.Init(&q.leases)
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
			next = now.Add(time.Duration(missing / s.Rate * float64(time.Second)))
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
