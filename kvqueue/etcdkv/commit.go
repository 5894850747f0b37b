package etcdkv

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/peer"

	"github.com/ambit-go/ambit/kvqueue"
)

// Commit does the writes in one transaction of etcd, if all guards hold. It sends it once. An
// error that matches [kvqueue.ErrUnknown] and [kvqueue.ErrNoSpace] says that the cluster has
// decided: it was done, or never will be. [kvqueue.ErrConflict] is also the answer to a write
// whose session has ended. A transaction that is too large is a [*kvqueue.InvalidError].
func (s *Store) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := s.fits(guards, writes); err != nil {
		return 0, err
	}
	compares, ops := make([]clientv3.Cmp, 0, len(guards)), make([]clientv3.Op, 0, len(writes))
	for _, g := range guards {
		if begin, end, ok := span(g.Key, g.End); ok {
			compares = append(compares, compare(begin, end, g))
		} else if g.End == nil {
			return 0, &kvqueue.InvalidError{What: "guard", Why: "its key is empty"}
		}
	}
	for _, w := range writes {
		ops = append(ops, write(w))
	}
	if len(ops) == 0 {
		ops = append(ops, nothing)
	}
	ctx, cancel := s.bound(ctx)
	defer cancel()
	var member peer.Peer
	resp, err := s.kv.Txn(context.WithValue(ctx, peerKey{}, &member)).If(compares...).Then(ops...).Commit()
	switch {
	case err != nil:
		return 0, outcome(ctx, err, member.Addr != nil)
	case !resp.Succeeded:
		return kvqueue.Rev(resp.Header.Revision), kvqueue.ErrConflict
	default:
		return kvqueue.Rev(resp.Header.Revision), nil
	}
}

// fits refuses what no member with default settings takes, before it is sent.
func (s *Store) fits(guards []kvqueue.Guard, writes []kvqueue.Write) error {
	limits, size := s.Limits(), 0
	for _, g := range guards {
		if size += len(g.Key) + len(g.End) + len(g.Value); g.End != nil && g.Is != kvqueue.Absent {
			return &kvqueue.InvalidError{What: "guard", Why: "of a range it can only be demanded that it is empty"}
		}
	}
	for _, w := range writes {
		size += len(w.Key) + len(w.Value)
	}
	switch {
	case len(guards) > limits.Guards:
		return &kvqueue.InvalidError{What: "transaction", Why: fmt.Sprintf("it has %d guards, and etcd takes %d", len(guards), limits.Guards)}
	case len(writes) > limits.Writes:
		return &kvqueue.InvalidError{What: "transaction", Why: fmt.Sprintf("it has %d writes, and etcd takes %d", len(writes), limits.Writes)}
	case size > limits.Bytes:
		return &kvqueue.InvalidError{What: "transaction", Why: fmt.Sprintf("it has %d bytes, and etcd takes %d", size, limits.Bytes)}
	}
	return nil
}

func compare(begin, end string, g kvqueue.Guard) clientv3.Cmp {
	switch g.Is {
	case kvqueue.Absent:
		c := clientv3.Compare(clientv3.CreateRevision(begin), "=", 0)
		if end != "" {
			c = c.WithRange(end)
		}
		return c
	case kvqueue.Present:
		return clientv3.Compare(clientv3.CreateRevision(begin), ">", 0)
	case kvqueue.Below: // etcd compares no value of a key that does not exist
		return clientv3.Compare(clientv3.Value(begin), "<", string(g.Value))
	default:
		return unchanged(begin, g.Rev)
	}
}

// unchanged demands a revision. No key has the revision 0, but to etcd that of a key that
// does not exist is 0, so a guard of it is made to fail.
func unchanged(key string, rev kvqueue.Rev) clientv3.Cmp {
	if rev <= 0 {
		return clientv3.Compare(clientv3.ModRevision(key), "<", 0)
	}
	return clientv3.Compare(clientv3.ModRevision(key), "=", int64(rev))
}

func write(w kvqueue.Write) clientv3.Op {
	switch {
	case w.Delete:
		return clientv3.OpDelete(string(w.Key))
	case w.Session != nil:
		return clientv3.OpPut(string(w.Key), string(w.Value), clientv3.WithLease(clientv3.LeaseID(w.Session.ID())))
	default:
		return clientv3.OpPut(string(w.Key), string(w.Value))
	}
}
