package asyncz

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/async/picture"
)

// Random tasks are started at random times while the page looks now and then: what it says of their ages is true, and it
// knows of each that it saw come how old it is within the time between two looks that it remembers.
func TestAgesAreTrue(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			ctx := asynctest.Context(t)
			rnd := rand.New(rand.NewPCG(seed, 1))
			p := Handler(Of(ctx))
			end := make(chan struct{})
			defer close(end)
			born := make(map[string]time.Time)
			start := func(ctx context.Context) {
				name := string(rune('A'+len(born)/26)) + string(rune('a'+len(born)%26))
				born[name] = time.Now()
				async.Go(ctx, func(context.Context) error { <-end; return nil }, async.Name(name))
			}
			var inner context.Context
			async.Go(ctx, func(ctx context.Context) error { inner = ctx; <-end; return nil }, async.Name("around"))
			born["around"] = time.Now()
			synctest.Wait()
			for range 300 {
				time.Sleep(time.Duration(rnd.IntN(20_000)+1) * time.Millisecond)
				switch rnd.IntN(5) {
				case 0:
					start(ctx)
				case 1:
					start(inner)
				default:
					p.look(false)
				}
				synctest.Wait()
			}
			time.Sleep(2 * time.Second)
			pic := p.look(false)
			known, exact := p.known(pic), 0
			for _, n := range pic.Nodes {
				at, ok := born[n.Name]
				if !ok {
					continue // the group of the test
				}
				old, a := pic.At.Sub(at), known.ages(n.ID)
				require.LessOrEqual(t, a.AtLeast, old, n.Name)
				if a.AtMost > 0 {
					require.GreaterOrEqual(t, a.AtMost, old, n.Name)
				}
				if a.AtLeast > 0 && a.AtMost > 0 && a.AtLeast*2 >= a.AtMost {
					exact++
				}
			}
			require.Greater(t, exact, len(born)/2, "most are known within a factor of two")
			for _, m := range p.ages.scopes {
				require.LessOrEqual(t, len(m.all), mostMarks)
			}
		})
	}
}

func TestAgesInWords(t *testing.T) {
	for want, a := range map[string]age{
		"?": {}, "≥41s": {AtLeast: 41 * time.Second}, "<5s": {AtMost: 5 * time.Second},
		"3h": {3*time.Hour + time.Minute, 3*time.Hour + 2*time.Minute}, "≥2h": {2 * time.Hour, 3 * time.Hour}, "≥3d": {AtLeast: 75 * time.Hour},
	} {
		require.Equal(t, want, a.String())
	}
}

// The memory of a page does not grow with the tasks that have ended.
func TestAPageForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		p := Handler(Of(ctx))
		for range 500 {
			deaf := async.Start(ctx, func(ctx context.Context) error { time.Sleep(10 * time.Second); return nil })
			deaf.Cancel(nil)
			async.Go(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, 10*time.Second) })
				return nil
			})
			time.Sleep(6 * time.Second)
			p.look(false)
		}
		require.Less(t, len(p.ages.scopes), 10)
		require.Less(t, len(p.first), 10)
		require.Len(t, p.past, mostPast)
	})
}

// However many look, the tree is looked at once a second, and a look that took long is followed by a long pause.
func TestLooksAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		p := Handler(Of(ctx))
		looks := func() map[*picture.Tree]bool {
			all := make(map[*picture.Tree]bool)
			var mu sync.Mutex
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					pic := p.look(false)
					mu.Lock()
					defer mu.Unlock()
					all[pic] = true
				})
			}
			wg.Wait()
			return all
		}
		first := looks()
		require.Len(t, first, 1)
		time.Sleep(fresh - time.Millisecond)
		require.Equal(t, first, looks())
		time.Sleep(time.Millisecond)
		second := looks()
		require.Len(t, second, 1)
		require.NotEqual(t, first, second)
	})
}

func TestALookThatTookLongIsFollowedByAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		end := make(chan struct{})
		defer close(end)
		slow := async.Start(ctx, func(ctx context.Context) error { <-end; return nil }, async.Name("told")) // it is there at each look
		p := Handler(Of(ctx), Texts())
		slow.Cancel(slowText{})
		before := p.look(false)
		require.GreaterOrEqual(t, before.Took, time.Second)
		time.Sleep(19 * time.Second)
		require.Same(t, before, p.look(false))
		time.Sleep(2 * time.Second)
		require.NotSame(t, before, p.look(false))
	})
}

// slowText is an error whose text takes a second.
type slowText struct{}

func (slowText) Error() string { time.Sleep(time.Second); return "slow" }

// Run looks until it is told to stop, and is no error of its scope then.
func TestRunLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		p := Handler(Of(ctx))
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, p.Run, async.Daemon())
			time.Sleep(time.Minute)
			return nil
		}))
		require.InDelta(t, 12, len(p.past), 1)
	})
}
