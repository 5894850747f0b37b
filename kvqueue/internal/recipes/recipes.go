// Package recipes has the queues beside which package kvqueue is measured, on any store of it:
//
//	RaceHead(kv, prefix)            the queue recipe: all race for the first item
//	Staging(kv, prefix)             its extension: who loses registers a request, and everybody fulfils
//	Relaxed(kv, prefix, window)     one of the first items by chance, so not in order
//
// Each returns a [Queue]. They deliver at most once, and what a process has begun that goes away is
// lost: they are for measurements only.
package recipes

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/kvqueue"
)

// A Queue is one of the recipes. Any number of goroutines may use it.
type Queue struct {
	kv      kvqueue.KV
	prefix  string
	window  int // how many of the first items one is chosen from
	staging bool

	first     atomic.Pointer[[]byte] // the first key seen last
	tries     atomic.Int64
	conflicts atomic.Int64
}

// RaceHead returns the queue recipe of FoundationDB: the first key is read, and deleted if it is
// there still.
func RaceHead(kv kvqueue.KV, prefix string) *Queue { return &Queue{kv: kv, prefix: prefix, window: 1} }

// Relaxed returns a queue that takes one of the first items, as many as window, by chance.
func Relaxed(kv kvqueue.KV, prefix string, window int) *Queue {
	return &Queue{kv: kv, prefix: prefix, window: window}
}

// Staging returns the queue recipe for many consumers: a dequeue that fails once registers a request,
// and then fulfils all requests that there are, again and again, until its own is.
func Staging(kv kvqueue.KV, prefix string) *Queue {
	return &Queue{kv: kv, prefix: prefix, window: 1, staging: true}
}

// Tries returns how many transactions of dequeues there were, and how many of them others have spoilt.
func (q *Queue) Tries() (tries, conflicts int64) { return q.tries.Load(), q.conflicts.Load() }

func (q *Queue) all(kind string) kvqueue.Range {
	return kvqueue.Range{Begin: []byte(q.prefix + kind + "/"), End: []byte(q.prefix + kind + "0")}
}

// key returns a key behind all that were made before a revision.
func (q *Queue) key(kind string, rev kvqueue.Rev) []byte {
	b := binary.BigEndian.AppendUint64([]byte(q.prefix+kind+"/"), uint64(rev))
	return binary.BigEndian.AppendUint64(b, rand.Uint64())
}

// Enqueue adds values in one transaction, in their order.
func (q *Queue) Enqueue(ctx context.Context, values ...[]byte) error {
	_, rev, err := q.kv.Read(ctx, kvqueue.Range{Begin: []byte(q.prefix)})
	if err != nil {
		return err
	}
	base, writes := q.key("q", rev), []kvqueue.Write{}
	for i, v := range values {
		writes = append(writes, kvqueue.Write{Key: binary.BigEndian.AppendUint32(bytes.Clone(base), uint32(i)), Value: v})
	}
	_, err = q.kv.Commit(ctx, nil, writes)
	return err
}

// Dequeue takes an item. It returns false if there is none.
func (q *Queue) Dequeue(ctx context.Context) (value []byte, ok bool, err error) {
	for {
		r := q.front()
		r.Limit = q.window
		got, rev, err := q.kv.Read(ctx, r)
		if err == nil && len(got[0].Pairs) == 0 {
			r = q.all("q")
			r.Limit = q.window
			got, rev, err = q.kv.Read(ctx, r)
		}
		if err != nil || len(got[0].Pairs) == 0 {
			return nil, false, err
		}
		q.first.Store(&got[0].Pairs[0].Key)
		p := got[0].Pairs[rand.N(len(got[0].Pairs))]
		err = q.commit(ctx, []kvqueue.Guard{unchanged(p)}, []kvqueue.Write{{Key: p.Key, Delete: true}})
		switch {
		case err == nil:
			return p.Value, true, nil
		case !errors.Is(err, kvqueue.ErrConflict):
			return nil, false, err
		case q.staging:
			return q.staged(ctx, rev)
		}
	}
}

// front is a range that begins with the first item seen last, and spans some revisions: etcd visits all
// keys of a range, whatever its limit is, and those that were deleted.
func (q *Queue) front() kvqueue.Range {
	r := q.all("q")
	if first := q.first.Load(); first != nil {
		hint := len(q.prefix) + 2
		r.Begin = *first
		r.End = binary.BigEndian.AppendUint64([]byte(q.prefix+"q/"), binary.BigEndian.Uint64((*first)[hint:])+frontSpan)
	}
	return r
}

const frontSpan = 32

func unchanged(p kvqueue.Pair) kvqueue.Guard { return kvqueue.Guard{Key: p.Key, Rev: p.Rev} }

func (q *Queue) commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) error {
	q.tries.Add(1)
	_, err := q.kv.Commit(ctx, guards, writes)
	if errors.Is(err, kvqueue.ErrConflict) {
		q.conflicts.Add(1)
	}
	return err
}

// most is how many requests one transaction fulfils at most: 128 operations hold three for each.
const most = 42

// staged registers a request, and has all requests fulfilled until its own is.
func (q *Queue) staged(ctx context.Context, rev kvqueue.Rev) (value []byte, ok bool, err error) {
	request := q.key("r", rev)
	result := append([]byte(q.prefix+"w/"), request[len(q.prefix)+2:]...)
	if _, err := q.kv.Commit(ctx, nil, []kvqueue.Write{{Key: request}}); err != nil {
		return nil, false, err
	}
	pause := async.Jitter(1, async.Backoff(time.Millisecond, 10*time.Millisecond))
	for try := 1; ; try++ {
		err := q.fulfil(ctx)
		if err != nil && !errors.Is(err, kvqueue.ErrConflict) {
			return nil, false, err
		}
		got, _, err := q.kv.Read(ctx, kvqueue.Range{Begin: result})
		if err != nil {
			return nil, false, err
		}
		if len(got[0].Pairs) > 0 {
			_, err := q.kv.Commit(ctx, nil, []kvqueue.Write{{Key: result, Delete: true}})
			return got[0].Pairs[0].Value, err == nil, err
		}
		if err := async.Sleep(ctx, pause(try)); err != nil {
			return nil, false, err
		}
	}
}

// fulfil gives the first items to the first requests.
func (q *Queue) fulfil(ctx context.Context) error {
	requests := q.all("r")
	requests.Limit = most
	items := q.front()
	items.Limit = most
	got, _, err := q.kv.Read(ctx, requests, items)
	switch {
	case err != nil:
		return err
	case len(got[1].Pairs) == 0:
		q.first.Store(nil)
		return nil
	}
	var guards []kvqueue.Guard
	var writes []kvqueue.Write
	for i := range min(len(got[0].Pairs), len(got[1].Pairs)) {
		r, p := got[0].Pairs[i], got[1].Pairs[i]
		result := append([]byte(q.prefix+"w/"), r.Key[len(q.prefix)+2:]...)
		guards = append(guards, unchanged(r), unchanged(p))
		writes = append(writes, kvqueue.Write{Key: r.Key, Delete: true}, kvqueue.Write{Key: p.Key, Delete: true},
			kvqueue.Write{Key: result, Value: p.Value})
	}
	if len(guards) == 0 {
		return nil
	}
	q.first.Store(&got[1].Pairs[0].Key)
	return q.commit(ctx, guards, writes)
}
