package etcdkv

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A quiet watcher has nothing to tell. It answers as long as its member is there.
type quiet struct {
	there   atomic.Bool
	created bool // else Watch waits
	rev     int64
	asked   atomic.Int64
	events  []int64 // the revisions of what it shows at once
}

func (q *quiet) Watch(ctx context.Context, key string, _ ...clientv3.OpOption) clientv3.WatchChan {
	if !q.created {
		<-ctx.Done()
	}
	c := make(chan clientv3.WatchResponse, 1+len(q.events))
	if key == "a/" {
		for _, rev := range q.events {
			e := &clientv3.Event{Kv: &mvccpb.KeyValue{Key: []byte("a/b"), ModRevision: rev}}
			c <- clientv3.WatchResponse{Header: pb.ResponseHeader{Revision: rev}, Events: []*clientv3.Event{e}}
		}
	}
	if key == "\x00" {
		if q.asked.Add(1); q.there.Load() {
			c <- clientv3.WatchResponse{Created: true, Header: pb.ResponseHeader{Revision: q.rev}}
		}
	}
	context.AfterFunc(ctx, func() { close(c) })
	return c
}

// RequestProgress has no answer: the revision at which the watcher begins has not come.
func (q *quiet) RequestProgress(context.Context) error { return nil }

func (q *quiet) Close() error { return nil }

func (q *quiet) open() clientv3.Watcher { return q }

// watch watches with a timeout of ten seconds, and returns after how long that ended, and why.
func watch(t *testing.T, q *quiet) (after time.Duration, err error) {
	s := &Store{watches: q, timeout: 10 * time.Second}
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
	defer cancel()
	for _, err = range s.Watch(ctx, 1, []byte("a/")) {
	}
	return time.Since(begin), err
}

func TestAWatchEndsWhenItsMemberDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &quiet{created: true, rev: 1}
		q.there.Store(true)
		time.AfterFunc(time.Hour+time.Second, func() { q.there.Store(false) })
		after, err := watch(t, q)
		assert.ErrorIs(t, err, errSilent)
		assert.Greater(t, after, time.Hour, "a member that answers may be silent for ever")
		assert.LessOrEqual(t, after, time.Hour+time.Second+15*time.Second)
		assert.Less(t, q.asked.Load(), int64(3600/5), "it is not asked more often than it takes")
	})
	synctest.Test(t, func(t *testing.T) {
		after, err := watch(t, &quiet{})
		assert.ErrorIs(t, err, errSilent, "the watch has never begun")
		assert.LessOrEqual(t, after, 15*time.Second)
	})
	synctest.Test(t, func(t *testing.T) {
		q := &quiet{created: true} // it has gone back to a state before the watch
		q.there.Store(true)
		after, err := watch(t, q)
		assert.ErrorIs(t, err, errSilent)
		assert.LessOrEqual(t, after, 15*time.Second)
	})
	synctest.Test(t, func(t *testing.T) { // the same, and a prefix in which little had changed shows what is new there
		q := &quiet{created: true, rev: 4, events: []int64{9, 3}}
		q.there.Store(true)
		after, err := watch(t, q)
		assert.ErrorIs(t, err, errSilent)
		assert.LessOrEqual(t, after, 20*time.Second)
	})
}
