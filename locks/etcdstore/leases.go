package etcdstore

import (
	"context"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/locks"
)

// spare is how much longer than its class a lease of etcd is: so long it is not renewed again,
// however many locks are taken or renewed meanwhile.
const spare = time.Second

// waiting is the class of requests that wait.
const waiting = int64(locks.WaiterLife / time.Second)

// leases are those of this process in etcd: one for each class, which is a number of seconds.
// All keys of a class are on one, and the keeper sees that each ends in its own time.
type leases struct {
	s *Store

	mu      sync.Mutex
	classes map[int64]chan class // each has one value, but while somebody asks etcd for the lease
}

// A class is a lease of etcd, if it has one.
type class struct {
	id   clientv3.LeaseID // 0: there is none
	sent time.Duration    // when the request that was answered last was sent
}

// seconds is the class of a lease: etcd counts in whole seconds.
func seconds(micros int64) int64 { return max((micros+999_999)/1_000_000, 1) }

func (l *leases) class(n int64) chan class {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.classes[n]
	if c == nil {
		c = make(chan class, 1)
		c <- class{}
		l.classes[n] = c
	}
	return c
}

// use returns the lease of a class, which lasts from now on for as many seconds at least. It asks
// etcd at most once in [spare].
func (l *leases) use(ctx context.Context, n int64) (clientv3.LeaseID, error) {
	var of class
	c := l.class(n)
	select {
	case of = <-c:
		defer func() { c <- of }()
	case <-ctx.Done():
		return 0, locks.Unavailable(context.Cause(ctx))
	}
	now := l.s.clock.Now()
	if of.id != 0 && now-of.sent <= spare {
		return of.id, nil
	}
	there, err := false, error(nil)
	if of.id != 0 && now-of.sent < time.Duration(n)*time.Second+2*spare { // else it is over
		if there, err = l.renew(ctx, of.id); err != nil {
			return 0, classed(ctx, err)
		}
	}
	if !there {
		if of.id, err = l.grant(ctx, n+int64(spare/time.Second)); err != nil {
			return 0, err
		}
	}
	of.sent = now
	return of.id, nil
}

// drop forgets all leases: etcd does not know one of them. Who asks etcd for one at the moment may
// have it, and is told the same.
func (l *leases) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.classes)
}

// grant makes a lease. If its answer is lost the lease ends unused.
func (l *leases) grant(ctx context.Context, seconds int64) (clientv3.LeaseID, error) {
	answer, err := l.s.leaseRPC.LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: seconds})
	if err != nil {
		return 0, classed(ctx, err)
	}
	return clientv3.LeaseID(answer.ID), nil
}

// renew has a lease last for all of its time from now on, and says whether it is there. The
// client's own KeepAliveOnce asks again and again while no member can be reached.
func (l *leases) renew(ctx context.Context, id clientv3.LeaseID) (there bool, err error) {
	ctx, cancel := context.WithCancel(ctx) // ends the stream
	defer cancel()
	stream, err := l.s.leaseRPC.LeaseKeepAlive(ctx)
	if err == nil {
		err = stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(id)})
	}
	if err != nil {
		return false, err
	}
	answer, err := stream.Recv()
	if noLease(err) {
		return false, nil
	}
	return err == nil && answer.TTL > 0, err
}

// left returns for how long a lease lasts, rounded down, and -1 if it is over.
func (l *leases) left(ctx context.Context, id clientv3.LeaseID) (seconds int64, err error) {
	answer, err := l.s.leaseRPC.LeaseTimeToLive(ctx, &pb.LeaseTimeToLiveRequest{ID: int64(id)})
	if noLease(err) {
		return -1, nil
	}
	if err != nil {
		return 0, classed(ctx, err)
	}
	return answer.TTL, nil
}
