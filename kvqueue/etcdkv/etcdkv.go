// Package etcdkv is etcd as a store of package kvqueue.
//
//	client, err := clientv3.New(clientv3.Config{
//		Endpoints:            endpoints,
//		DialKeepAliveTime:    10 * time.Second,
//		DialKeepAliveTimeout: 3 * time.Second,
//	})
//	...
//	q, err := kvqueue.Open(ctx, etcdkv.New(client), "orders", kvqueue.Compact(10*time.Minute))
//
// The two DialKeepAlive settings let the client notice a member that does not answer any
// more while its connection stays open, and turn to others. Without them calls go on to be sent to
// it, by turns, and each of those takes the whole [Timeout]; a watch notices it by itself.
//
// # What etcd needs
//
// etcd keeps what was deleted until it is compacted: see [kvqueue.Compact]. When its file
// has reached the quota etcd refuses everything that adds data, and goes on to do so after
// a compaction, until its file is defragmented and the alarm cleared. Until then calls
// return [kvqueue.ErrNoSpace]; only [kvqueue.Queue.Ack] works.
//
// A user of etcd needs the permission to read and write the keys under the prefix of the
// queue (see [kvqueue.Prefix]), and the key that is one zero byte, which is never written.
package etcdkv

import (
	"context"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/kvqueue"
)

// A Store is a [kvqueue.KV] and a [kvqueue.Compacter] on etcd. It is made by [New], and has
// nothing to close: the client is its caller's. Any number of goroutines may use it.
type Store struct {
	client  *clientv3.Client
	kv      clientv3.KV // knows whether a request was sent
	watches opener
	leases  pb.LeaseClient
	timeout time.Duration
	asking  time.Duration // how long a call whose time is over may ask what is wrong
}

var (
	_ kvqueue.KV        = (*Store)(nil)
	_ kvqueue.Compacter = (*Store)(nil)
)

// An Option changes how a store is used.
type Option func(*Store)

// Timeout is how long one call of etcd may take, 5 s by default, even if its context lasts
// for longer. A watch has no end. Timeout panics if d is not positive.
func Timeout(d time.Duration) Option {
	if d <= 0 {
		panic(fmt.Sprintf("etcdkv: Timeout of %v: say how long a call may take", d))
	}
	return func(s *Store) { s.timeout = d }
}

// New returns a store on the cluster of a client. The client must stay open while the store
// is used. A KV, Watcher or Lease that was put into the client in place of its own, as for a
// namespace, is not used: [kvqueue.Prefix] keeps queues apart. A nil client panics.
func New(client *clientv3.Client, options ...Option) *Store {
	if client == nil {
		panic("etcdkv: New with a nil client: make one with clientv3.New")
	}
	s := &Store{
		client:  client,
		kv:      clientv3.NewKVFromKVClient(sender{pb.NewKVClient(client.ActiveConnection())}, client),
		watches: ofClient{client},
		leases:  pb.NewLeaseClient(client.ActiveConnection()),
		timeout: 5 * time.Second,
		asking:  100 * time.Millisecond,
	}
	for _, o := range options {
		o(s)
	}
	return s
}

// maxBytes is what keys and values of a transaction may have together, of the 1.5 MiB that a
// member takes by default (--max-request-bytes). The rest is for how they are packed: less than
// 64 bytes for each of 128 guards and 128 writes.
const maxBytes = 3<<19 - 256*64

// Limits returns those of a member with its default settings: 128 guards, 128 writes,
// and 16 KiB less than 1.5 MiB. A lease lives for one and a half times the election timeout at least, rounded up to
// seconds: that is 2 s. A cluster with a longer election timeout has sessions live for longer
// than was asked for.
func (s *Store) Limits() kvqueue.Limits {
	return kvqueue.Limits{Guards: 128, Writes: 128, Bytes: maxBytes, MinTTL: 2 * time.Second, Compaction: true}
}

// Compact has the cluster forget what was deleted or overwritten at the revision or before.
// It is no error that this was done before. It waits until the compaction is recorded, not until
// the space is free; the file of etcd stays as large as it is and is used again.
func (s *Store) Compact(ctx context.Context, before kvqueue.Rev) error {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	_, err := s.kv.Compact(ctx, int64(before))
	if is(err, errCompacted) {
		return nil
	}
	return plain(ctx, "compact", err)
}

// errTimeout is the cause of the contexts of calls that took too long.
type errTimeout time.Duration

func (e errTimeout) Error() string {
	return fmt.Sprintf("etcd did not answer within %v", time.Duration(e))
}

// bound returns the context of one call, which knows when that has begun.
func (s *Store) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	c := call{began: time.Now(), asking: s.asking}
	if s.client != nil {
		c.conn = s.client.ActiveConnection()
	}
	ctx = context.WithValue(ctx, callKey{}, c)
	return context.WithTimeoutCause(ctx, s.timeout, errTimeout(s.timeout))
}
