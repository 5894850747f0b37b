package locks_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
	"github.com/ambit-go/ambit/locks/memstore"
)

// TestOptionsGoTogether runs random programs: calls with options drawn at random, one inside
// of another, in three processes whose store fails now and then, while somebody revokes,
// resizes and deletes. Whatever goes together with what, no two believe to have the same
// permit, every call returns, and nothing is left in the store.
func TestOptionsGoTogether(t *testing.T) {
	for seed := range uint64(pairSeeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newPairs(t, seed).run() })
		})
	}
}

const pairSeeds = 60

// poolSize is the greatest size that the semaphore has.
const poolSize = 4

var errOfBody = errors.New("the body has failed")

// pairs is one random program.
type pairs struct {
	t        *testing.T
	base     locks.Store
	managers []*locks.Manager

	mu      sync.Mutex
	random  *rand.Rand
	bodies  map[string]map[*locks.Hold]claim // by key: what runs
	newest  map[string]int64
	granted int
}

// A claim is what a hold has of its lock.
type claim struct {
	permits int
	shared  bool
}

func newPairs(t *testing.T, seed uint64) *pairs {
	p := &pairs{
		t: t, base: memstore.New(), random: rand.New(rand.NewPCG(seed, 1)),
		bodies: map[string]map[*locks.Hold]claim{}, newest: map[string]int64{},
	}
	for i := range 3 {
		s := lockstest.NewFaulty(p.base)
		s.Inject(p.fault)
		s.Mute(i == 2)
		m, err := locks.New(s, locks.Lease(5*time.Second), locks.Owner(fmt.Sprint("process ", i)))
		require.NoError(t, err)
		p.managers = append(p.managers, m)
	}
	return p
}

func (p *pairs) n(below int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.random.IntN(below)
}

func (p *pairs) one(of int) bool { return p.n(of) == 0 }

func (p *pairs) upTo(d time.Duration) time.Duration { return time.Duration(p.n(int(d))) + 1 }

func (p *pairs) fault(lockstest.Call) (f lockstest.Fault) {
	switch p.n(40) {
	case 0:
		f.Fail = lockstest.ErrFault
	case 1:
		f.Lose = lockstest.ErrFault
	case 2:
		f.Silent = true
	case 3:
		f.SilentAfter = true
	case 4, 5, 6:
		f.Before, f.After = p.upTo(time.Second), p.upTo(time.Second)
	case 7:
		f.Skip = true
	}
	return f
}

// run runs the program to its end, and looks at what is left.
func (p *pairs) run() {
	ctx, cancel := context.WithTimeout(p.t.Context(), 4*time.Hour)
	defer cancel()
	err := async.Scope(ctx, func(ctx context.Context) error {
		for range 8 {
			async.Go(ctx, func(ctx context.Context) error {
				for range 12 {
					p.call(ctx, 0, "")
				}
				return nil
			})
		}
		async.Go(ctx, func(ctx context.Context) error {
			for range 60 {
				p.disturb(ctx)
				_ = async.Sleep(ctx, p.upTo(5*time.Second))
			}
			return nil
		})
		return nil
	})
	require.NoError(p.t, err)
	require.NoError(p.t, ctx.Err(), "somebody has waited for hours")
	require.Greater(p.t, p.granted, 20)
	time.Sleep(5 * time.Minute)
	for _, key := range []string{"a", "b", "c", "pool", "rw"} {
		r, err := p.base.Get(ctx, locks.Name{Tenant: "default", Key: key})
		if !errors.Is(err, locks.ErrNotFound) {
			require.NoError(p.t, err)
			require.Zero(p.t, r.Busy, key)
			require.Zero(p.t, r.Waiters, key)
		}
	}
}

// options draws some for a call.
func (p *pairs) options() (options []locks.LockOption) {
	for _, o := range []locks.LockOption{
		locks.Fair(false), locks.LeaseFor(500*time.Millisecond + p.upTo(10*time.Second)), locks.Wait(p.upTo(20 * time.Second)), locks.NoWait(),
		locks.Data("data"), locks.OnlyIfExists(), locks.DeleteOnRelease(), locks.RequireProgress(p.upTo(10 * time.Second)),
		locks.LockDelay(p.upTo(5 * time.Second)), locks.OnOverrun(func(*locks.LostError) {}), locks.NoRenew(),
	} {
		if p.one(5) {
			options = append(options, o)
		}
	}
	if !p.one(3) {
		options = append(options, locks.Reentrant())
	}
	return options
}

// call makes one call. Calls inside of others are for greater keys than key, or for the same.
func (p *pairs) call(ctx context.Context, depth int, key string) {
	m, options := p.managers[p.n(len(p.managers))], p.options()
	if depth > 0 && p.one(3) {
		options = append(options, locks.Wait(p.upTo(5*time.Second)))
	}
	var err error
	var ran []*locks.Hold
	body := func(keys []string, c claim) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			for _, key := range keys {
				ran = append(ran, locks.FromKey(ctx, key))
			}
			return p.body(ctx, depth, keys, c)
		}
	}
	switch n := p.n(10); {
	case key != "" && p.one(2) || n < 4:
		name := key
		if key == "" || key > "c" {
			name = []string{"a", "b", "c"}[p.n(3)]
		}
		if name < key {
			return
		}
		err = m.With(ctx, name, body([]string{name}, claim{permits: 1}), options...)
	case n < 6 && key == "":
		err = m.WithAll(ctx, []string{"c", "a", "b"}, body([]string{"a", "b", "c"}, claim{permits: 1}), options...)
	case n < 8 && key <= "pool":
		size := 2 + p.n(poolSize-1)
		permits := 1 + p.n(size)
		if p.one(2) {
			options = append(options, locks.Resize())
		}
		err = m.WithPermits(ctx, "pool", size, permits, body([]string{"pool"}, claim{permits: permits}), options...)
	case n == 8 && key == "":
		err = m.Lead(ctx, "b", body([]string{"b"}, claim{permits: 1}), options...)
		ran = ran[max(0, len(ran)-1):] // what it had before was lost, or it would not have gone on
	case p.one(2):
		err = m.WithRead(ctx, "rw", body([]string{"rw"}, claim{permits: 1, shared: true}), options...)
	default:
		err = m.WithWrite(ctx, "rw", body([]string{"rw"}, claim{permits: 1}), options...)
	}
	p.expected(err)
	for _, h := range ran {
		if err == nil && depth == 0 {
			assert.Equal(p.t, locks.ErrReleased, h.Err(), "it was lost, and the call says nothing of it")
		}
	}
}

func (p *pairs) expected(err error) {
	for _, known := range []error{
		nil, errOfBody, locks.ErrNotGranted, locks.ErrConflict, locks.ErrNotFound, locks.ErrReentrant, locks.ErrUnavailable, locks.ErrNotReleased, locks.ErrReleased,
	} {
		if errors.Is(err, known) {
			return
		}
	}
	assert.ErrorAs(p.t, err, new(*locks.LostError))
}

// body does at random what bodies do.
func (p *pairs) body(ctx context.Context, depth int, keys []string, c claim) error {
	p.claims(ctx, keys, c)
	h := locks.FromKey(ctx, keys[len(keys)-1])
	for range p.n(5) {
		switch p.n(9) {
		case 0:
			_ = async.Sleep(ctx, p.upTo(8*time.Second))
		case 1:
			time.Sleep(p.upTo(3 * time.Second)) // it does not look at its ctx
		case 2, 3:
			h.Progress()
		case 4:
			_ = h.Extend(ctx, 500*time.Millisecond+p.upTo(10*time.Second))
		case 5:
			_ = h.SetData(fmt.Sprint(p.n(10)))
		case 6:
			async.Go(ctx, func(ctx context.Context) error {
				_ = async.Sleep(ctx, p.upTo(4*time.Second))
				p.look(keys)
				return nil
			})
		case 7:
			if depth < 2 {
				p.call(ctx, depth+1, keys[len(keys)-1])
			}
		case 8:
			if p.one(4) {
				return errOfBody
			}
		}
		p.look(keys)
	}
	return nil
}

// claims notes that a body runs under its locks.
func (p *pairs) claims(ctx context.Context, keys []string, c claim) {
	p.mu.Lock()
	for _, key := range keys {
		h := locks.FromKey(ctx, key)
		if p.bodies[key] == nil {
			p.bodies[key] = map[*locks.Hold]claim{}
		}
		if _, again := p.bodies[key][h]; again {
			continue
		}
		p.granted++
		p.bodies[key][h] = c
		if key < "pool" && h.Err() == nil {
			assert.Greater(p.t, h.Token(), p.newest[key], "the token of %s", key)
			p.newest[key] = h.Token()
		}
	}
	p.mu.Unlock()
	p.look(keys)
}

// look checks who believes to have the locks.
func (p *pairs) look(keys []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range keys {
		permits, shared, alone := 0, 0, 0
		for h, c := range p.bodies[key] {
			if h.Err() != nil {
				delete(p.bodies[key], h)
				continue
			}
			permits += c.permits
			if c.shared {
				shared++
			} else {
				alone++
			}
		}
		switch key {
		case "pool":
			assert.LessOrEqual(p.t, permits, poolSize)
		case "rw":
			assert.True(p.t, alone == 0 || alone == 1 && shared == 0, "%d write and %d read", alone, shared)
		default:
			assert.LessOrEqual(p.t, alone, 1, "%s", key)
		}
	}
}

// disturb does what others may do to locks at any time.
func (p *pairs) disturb(ctx context.Context) {
	m, key := p.managers[p.n(3)], []string{"a", "b", "c", "pool", "rw"}[p.n(5)]
	switch p.n(5) {
	case 0:
		_, _ = m.Revoke(ctx, key)
	case 1:
		_, _ = m.CreateSemaphore(ctx, "pool", 1+p.n(poolSize))
	case 2:
		_ = m.Delete(ctx, key, "")
	case 3:
		if r, err := m.Get(ctx, key); err == nil {
			_, _ = m.Heartbeat(ctx, key, r.Version, locks.RotateVersion(), locks.Data("of somebody else"), locks.LeaseFor(3*time.Second))
		}
	case 4:
		_, _ = m.CreateMutex(ctx, key, locks.DeleteOnRelease(), locks.LockDelay(time.Second))
	}
}
