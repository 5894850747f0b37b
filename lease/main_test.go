package lease_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/clitest"
	"github.com/ambit-go/ambit/lease"
)

func TestMain(m *testing.M) {
	if os.Getenv(asStopped) != "" {
		beStopped()
		return
	}
	os.Exit(clitest.LeakChecked(m).Run())
}

const asStopped = "LEASE_TEST_STOPPED"

const length = 15 * time.Second

var errStore = errors.New("connection refused")

// believed is for how long a term of the usual length is believed.
var believed = lease.Term{Length: length}.Believed()

// A world is a keeper on a virtual clock, and the store that it renews in.
type world struct {
	*testing.T
	clock  *lease.Clock
	k      *lease.Keeper[string]
	answer func(ctx context.Context, c made) ([]error, error) // nil: yes to all

	mu    sync.Mutex
	calls []made
}

// A batch is what a renew function is given.
type batch = []lease.Renewal[string]

// A made is a call that was made of the renew function.
type made struct {
	at    time.Duration
	batch batch
}

func (c made) has(of string) bool {
	for _, r := range c.batch {
		if r.Of == of {
			return true
		}
	}
	return false
}

// in calls f in a bubble and a scope.
func in(t *testing.T, f func(ctx context.Context, w *world), opts ...lease.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, clock: lease.NewClock()}
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			w.k = lease.NewKeeper(ctx, w.renew, append(opts, lease.WithClock(w.clock))...)
			f(ctx, w)
			return nil
		})
		require.NoError(t, err)
	})
}

func (w *world) renew(ctx context.Context, batch batch) ([]error, error) {
	c := made{w.k.Now(), batch}
	w.mu.Lock()
	w.calls = append(w.calls, c)
	answer := w.answer
	w.mu.Unlock()
	if answer == nil {
		return nil, nil
	}
	return answer(ctx, c)
}

// answers has every later call answered by f.
func (w *world) answers(f func(ctx context.Context, c made) ([]error, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = f
}

// made returns the calls so far.
func (w *world) made() []made {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[:len(w.calls):len(w.calls)]
}

// keep keeps something that was granted just now.
func (w *world) keep(of string, d time.Duration, opts ...lease.LeaseOption) *lease.Lease {
	w.Helper()
	l, err := w.k.Keep(of, lease.Term{Granted: w.k.Now(), Length: d}, opts...)
	require.NoError(w, err)
	return l
}

// silent is a store that does not answer.
func silent(ctx context.Context, _ made) ([]error, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// down is a store that cannot be reached.
func down(context.Context, made) ([]error, error) { return nil, errStore }

// is says that an error is for one reason and for no other.
func is(t *testing.T, err, reason error) {
	t.Helper()
	for _, other := range []error{lease.ErrOver, lease.ErrLost, lease.ErrEnded} {
		assert.Equal(t, other == reason, errors.Is(err, other), "%v is %v", err, other)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
