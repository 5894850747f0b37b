package etcdkv

import (
	"context"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/kvqueue"
)

// Session grants a lease. etcd counts in seconds: a fraction is rounded up.
func (s *Store) Session(ctx context.Context, ttl time.Duration) (kvqueue.Session, error) {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	resp, err := s.client.Grant(ctx, int64((ttl+time.Second-1)/time.Second))
	if err != nil {
		return nil, plain(ctx, "grant a lease", err)
	}
	return &session{s, resp.ID}, nil
}

// A session is a lease.
type session struct {
	store *Store
	lease clientv3.LeaseID
}

func (s *session) ID() int64 { return int64(s.lease) }

// Renew sends one sign of life and waits for the answer. The client's own KeepAliveOnce asks
// again and again without a pause while no member can be reached; here the caller decides when
// to try again.
func (s *session) Renew(ctx context.Context) error {
	ctx, cancel := s.store.bound(ctx)
	defer cancel()
	ttl, err := s.renew(ctx)
	switch {
	case is(err, errLeaseNotFound), err == nil && ttl <= 0:
		return fmt.Errorf("etcdkv: lease %016x: %w", uint64(s.lease), kvqueue.ErrSessionLost)
	default:
		return plain(ctx, "renew a lease", err)
	}
}

func (s *session) renew(ctx context.Context) (ttl int64, err error) {
	stream, err := s.store.leases.LeaseKeepAlive(ctx)
	if err != nil {
		return 0, err
	}
	if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(s.lease)}); err != nil {
		return 0, err
	}
	resp, err := stream.Recv()
	if err != nil {
		return 0, err
	}
	_ = stream.CloseSend() // bound ends the stream
	return resp.TTL, nil
}

// End revokes the lease, and with it the keys.
func (s *session) End(ctx context.Context) error {
	ctx, cancel := s.store.bound(ctx)
	defer cancel()
	_, err := s.store.client.Revoke(ctx, s.lease)
	if is(err, errLeaseNotFound) {
		return nil
	}
	return plain(ctx, "revoke a lease", err)
}
