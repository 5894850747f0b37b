package lease_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/lease"
)

// A server is the store of the model: it knows when each term ends by its own clock, and grants
// a thing to somebody else at that moment. It is too simple to be wrong.
type server struct {
	t   *testing.T
	now func() time.Duration

	mu   sync.Mutex               // calls run beside each other, and beside the game
	ends map[string]time.Duration // nil entry: not granted
	gone map[string]bool          // released: a renewal after that is a fault
	mode byte
}

// renew does what the mode says: answer, fail, do it and lose the answer, answer late, skip,
// hang, or say that the lease is lost.
func (s *server) renew(ctx context.Context, batch batch) ([]error, error) {
	s.mu.Lock()
	mode := s.mode % 7
	s.mu.Unlock()
	if mode == 3 {
		time.Sleep(time.Second)
	}
	answers := s.answer(mode, batch)
	switch mode {
	case 1, 2:
		return nil, errStore
	case 5:
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return answers, nil
}

// answer does what is asked for, if the mode lets it.
func (s *server) answer(mode byte, renewals batch) []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	answers := make([]error, len(renewals))
	for i, r := range renewals {
		assert.False(s.t, s.gone[r.Of], "%s was let go", r.Of)
		switch end, granted := s.ends[r.Of]; {
		case mode == 6, !granted || s.now() >= end:
			delete(s.ends, r.Of)
			answers[i] = lease.ErrLost
		case mode == 4:
			answers[i] = lease.ErrSkipped
		case mode == 0, mode == 2, mode == 3:
			s.ends[r.Of] = max(end, s.now()+r.Length)
		}
	}
	return answers
}

// FuzzLease runs random programs of owners, a store in trouble, and suspends, and checks after
// each step that no holder believes what the store may have granted to somebody else.
func FuzzLease(f *testing.F) {
	f.Add([]byte{0, 10, 1, 40, 3, 1, 1, 200, 4, 0})
	f.Add([]byte{0, 5, 0, 9, 3, 5, 1, 250, 3, 0, 1, 250, 6, 2, 5, 0, 1, 99})
	f.Add([]byte{0, 1, 2, 200, 1, 2, 5, 0, 0, 2, 4, 0, 1, 255, 3, 6, 1, 255})
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > 60 { // a bound of steps
			program = program[:60]
		}
		synctest.Test(t, func(t *testing.T) { play(t, program) })
	})
}

// play runs a program: pairs of a step and its argument.
func play(t *testing.T, program []byte) {
	clock := lease.NewClock()
	s := &server{t: t, now: clock.Now, ends: map[string]time.Duration{}, gone: map[string]bool{}}
	err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		g := &game{T: t, server: s, clock: clock, k: lease.NewKeeper(ctx, s.renew, lease.WithClock(clock))}
		defer func() {
			for _, h := range g.held {
				h.stop()
			}
		}()
		for i := 0; i+1 < len(program); i += 2 {
			g.step(ctx, program[i], program[i+1])
			synctest.Wait()
			g.check()
		}
		return nil
	})
	require.NoError(t, err)
}

// A game is a program that is being run.
type game struct {
	*testing.T
	*server
	clock *lease.Clock
	k     *lease.Keeper[string]
	held  []*holder
}

type holder struct {
	*lease.Lease
	of       string
	ctx      context.Context
	stop     context.CancelFunc
	believed bool // nobody has seen the end of the belief
}

func (g *game) step(ctx context.Context, what, arg byte) {
	switch what % 7 {
	case 0:
		of := string(rune('a' + len(g.held)))
		sent := g.k.Now()
		time.Sleep(time.Duration(arg) * ms)
		g.set(func() { g.ends[of] = g.k.Now() + time.Second*time.Duration(1+arg%8) })
		if l, err := g.k.Keep(of, lease.Term{Granted: sent, Length: time.Second * time.Duration(1+arg%8)}); err == nil {
			h := &holder{Lease: l, of: of, believed: true}
			h.ctx, h.stop = l.Context(ctx)
			g.held = append(g.held, h)
		}
	case 1:
		time.Sleep(time.Duration(arg) * 20 * ms)
	case 2:
		g.clock.Suspend(time.Duration(arg) * 20 * ms)
	case 3:
		g.set(func() { g.mode = arg })
	default:
		if len(g.held) > 0 {
			g.act(ctx, g.held[int(arg)%len(g.held)], what%7)
		}
	}
}

// set changes what the server has.
func (g *game) set(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}

// act has an owner do something with its lease.
func (g *game) act(ctx context.Context, h *holder, what byte) {
	bound, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	switch what {
	case 4:
		if h.Release(bound) == nil {
			g.set(func() { g.gone[h.of] = true })
		}
	case 5:
		_ = h.End()
	case 6:
		_ = h.Extend(bound, 2*time.Second)
	}
}

// check checks what holds at every moment.
func (g *game) check() {
	for _, h := range g.held {
		err := h.ctx.Err() // it is asked first, as user code does
		if now := g.k.Now(); err == nil {
			g.mu.Lock()
			end, granted := g.ends[h.of]
			g.mu.Unlock()
			assert.True(g, granted && now+100*ms <= end, "%s is believed at %v, it ends at %v", h.of, now, end)
			assert.True(g, h.believed, "the end of %s is final", h.of)
		}
		assert.Equal(g, err == nil, h.Err() == nil)
		assert.Equal(g, err == nil, h.Remaining() > 0)
		h.believed = err == nil
	}
}
