package etcdstore

import (
	"context"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/alone"
	"github.com/ambit-go/ambit/locks/internal/book"
)

const (
	together = 100 // keys that one request asks for
	beside   = 8   // such requests at the same time
)

// A held is a renewal of a lease that this process has made, and only lasts longer.
type held struct {
	i    int // of the renewal
	what string
	term *term
}

// Renew is a method of locks.Store. It renews the lease of etcd of each class, and then looks
// whether the keys are there, and on that lease. All else that is to be changed, as data, is a
// step of its own.
func (s *Store) Renew(ctx context.Context, renewals []locks.Renewal) ([]locks.RenewResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, locks.Unavailable(context.Cause(ctx))
	}
	results, errs := make([]locks.RenewResult, len(renewals)), make([]error, len(renewals))
	for n, all := range s.mine(renewals) {
		lease, err := s.leases.use(ctx, n)
		if err == nil {
			err = async.ForEach(ctx, slices.Chunk(all, together), func(ctx context.Context, some []held) error {
				return s.longer(ctx, lease, some, results)
			}, async.Limit(beside))
		}
		for _, h := range all {
			errs[h.i] = err
		}
	}
	return alone.Renew(ctx, len(renewals), beside, func(ctx context.Context, i int) (result locks.RenewResult, err error) {
		if errs[i] != nil || results[i].Verdict != 0 {
			return results[i], errs[i]
		}
		_, err = s.step(ctx, renewals[i].Name, nil, func(now int64, r *book.Resource) { result = r.Renew(now, &renewals[i]) })
		return result, err
	})
}

// mine are the renewals of leases that this process has made, by class, if they are only to last
// longer.
func (s *Store) mine(renewals []locks.Renewal) map[int64][]held {
	classes := map[int64][]held{}
	for i := range renewals {
		q := &renewals[i]
		if q.ID == "" || q.NewVersion != "" || q.Data != nil {
			continue
		}
		what, n := s.ofName(q.Name)+holdKey+q.ID, seconds(q.Lease.Microseconds())
		if t := s.keeper.longer(what, q.Lease); t != nil {
			classes[n] = append(classes[n], held{i, what, t})
		}
	}
	return classes
}

// longer looks whether holds are there as this process has written them, on the lease of etcd that
// was just renewed. It sets no result for the others.
func (s *Store) longer(ctx context.Context, lease clientv3.LeaseID, some []held, results []locks.RenewResult) error {
	ops := make([]clientv3.Op, len(some))
	for i, h := range some {
		ops[i] = clientv3.OpGet(h.what, clientv3.WithKeysOnly())
	}
	answer, err := s.kv.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return classed(ctx, err)
	}
	now := time.Now()
	for i, h := range some {
		kvs := answer.Responses[i].GetResponseRange().Kvs
		if len(kvs) == 1 && clientv3.LeaseID(kvs[0].Lease) == lease && kvs[0].ModRevision == h.term.changed {
			results[h.i] = locks.RenewResult{Verdict: locks.Extended, Grant: h.term.entry.Grant()}
			results[h.i].Grant.Expires = now.Add(h.term.length())
		}
	}
	return nil
}
