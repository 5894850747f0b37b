package etcdkv

import (
	"bytes"
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/kvqueue"
)

// nothing is the read of a key that does not exist. A transaction of no operation at all is
// answered by any member with what it knows; this makes the cluster agree first.
var nothing = clientv3.OpGet("\x00")

// Read reads ranges in one transaction, linearizable. While no member can be reached, or
// they elect a leader, it tries again until the end of ctx or of the [Timeout].
func (s *Store) Read(ctx context.Context, ranges ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev, error) {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	ops := make([]clientv3.Op, 0, len(ranges)+1)
	place := make([]int, len(ranges)) // of each range in ops, from 1; 0: it spans nothing
	for i, r := range ranges {
		if begin, end, ok := span(r.Begin, r.End); ok {
			ops = append(ops, get(begin, end, r))
			place[i] = len(ops)
		}
	}
	if len(ops) == 0 {
		ops = append(ops, nothing)
	}
	resp, err := s.read(ctx, ops)
	if err != nil {
		return nil, 0, plain(ctx, "read", err)
	}
	results := make([]kvqueue.Result, len(ranges))
	for i := range ranges {
		if place[i] > 0 {
			got := resp.Responses[place[i]-1].GetResponseRange()
			results[i] = kvqueue.Result{Pairs: pairs(got.Kvs), More: got.More}
		}
	}
	return results, kvqueue.Rev(resp.Header.Revision), nil
}

// read does a transaction of reads, and repeats it while the cluster cannot answer.
func (s *Store) read(ctx context.Context, ops []clientv3.Op) (*clientv3.TxnResponse, error) {
	pause := async.Jitter(0.5, async.Backoff(10*time.Millisecond, 500*time.Millisecond))
	for try := 1; ; try++ {
		resp, err := s.kv.Txn(ctx).Then(ops...).Commit()
		if err == nil || !passing(err) || async.Sleep(ctx, pause(try)) != nil {
			return resp, err
		}
	}
}

func get(begin, end string, r kvqueue.Range) clientv3.Op {
	options := []clientv3.OpOption{clientv3.WithLimit(int64(r.Limit))}
	if end != "" {
		options = append(options, clientv3.WithRange(end))
	}
	if r.KeysOnly {
		options = append(options, clientv3.WithKeysOnly())
	}
	return clientv3.OpGet(begin, options...)
}

// span returns a range in the words of etcd, where no key is empty and an end of one zero
// byte is the end of everything; an empty end is that of a single key. It reports false if
// there can be no key in it.
func span(from, to []byte) (begin, end string, ok bool) {
	switch {
	case to == nil:
		return string(from), "", len(from) > 0
	case len(from) == 0:
		from = []byte{0}
	}
	return string(from), string(to), bytes.Compare(from, to) < 0
}

func pairs(kvs []*mvccpb.KeyValue) []kvqueue.Pair {
	out := make([]kvqueue.Pair, len(kvs))
	for i, kv := range kvs {
		out[i] = pair(kv)
	}
	return out
}

func pair(kv *mvccpb.KeyValue) kvqueue.Pair {
	return kvqueue.Pair{Key: kv.Key, Value: kv.Value, Rev: kvqueue.Rev(kv.ModRevision)}
}
