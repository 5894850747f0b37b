//go:build linux

package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue/cmd/internal/chaos/audit"
)

func TestEveryFaultIsInjectedThoughTheTimeIsOver(t *testing.T) {
	w := &world{injected: map[string]int{}}
	over := make(chan struct{})
	close(over)
	tries := 0
	deck := []fault{
		{"easy", func(context.Context, *rand.Rand) (bool, error) { return true, nil }},
		{"hard", func(context.Context, *rand.Rand) (bool, error) { tries++; return tries == 3, nil }},
	}
	require.NoError(t, w.deal(t.Context(), rand.New(rand.NewPCG(1, 2)), deck, over))
	assert.Equal(t, map[string]int{"easy": 1, "hard": 1}, w.injected)
	broken := []fault{{"broken", func(context.Context, *rand.Rand) (bool, error) { return false, errors.New("why") }}}
	assert.ErrorContains(t, w.deal(t.Context(), rand.New(rand.NewPCG(1, 2)), broken, over), "why")
}

func TestTheSameSeedDealsTheSameFaults(t *testing.T) {
	deal := func(seed uint64) (dealt []string) {
		w := &world{injected: map[string]int{}}
		over := make(chan struct{})
		var deck []fault
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			deck = append(deck, fault{name, func(_ context.Context, rng *rand.Rand) (bool, error) {
				dealt = append(dealt, name, ms(rng, 0, 1000).String())
				if len(dealt) == 10 {
					close(over)
				}
				return true, nil
			}})
		}
		require.NoError(t, w.deal(t.Context(), rand.New(rand.NewPCG(seed, 0)), deck, over))
		return dealt
	}
	assert.Equal(t, deal(1), deal(1))
	assert.NotEqual(t, deal(1), deal(2))
}

func TestARunThatShowsNothingFails(t *testing.T) {
	enough := audit.Report{Acknowledged: 500, Runs: 500}
	report := func(injected int, r audit.Report, err error) (bool, string) {
		w := &world{name: "a world", injected: map[string]int{"a fault": injected}, order: []string{"a fault"}}
		out := new(strings.Builder)
		return w.report(out, r, err), out.String()
	}
	ok, text := report(1, enough, nil)
	assert.True(t, ok, text)
	ok, text = report(0, enough, nil)
	assert.False(t, ok)
	assert.Contains(t, text, "it was never injected: a fault")
	ok, _ = report(1, audit.Report{}, nil)
	assert.False(t, ok)
	ok, text = report(1, enough, errors.New("why"))
	assert.False(t, ok)
	assert.Contains(t, text, "why")
	enough.Faults = []string{"task a is lost"}
	ok, text = report(1, enough, nil)
	assert.False(t, ok)
	assert.Contains(t, text, "task a is lost")
}

// One deck kills all processes while the other one tells a worker to stop, and replaces it.
func TestNobodyIsReplacedInAFleetThatIsBeingEnded(t *testing.T) {
	f := newFleet(t.TempDir(), "", 5, 1, false)
	f.wanted["producer"], f.wanted["worker"] = 2, 3
	require.NoError(t, f.killAll())
	require.NoError(t, f.refill())
	assert.Empty(t, f.all)
}

func TestADiskIsFilledAndEmptied(t *testing.T) {
	d, err := newDisk(t.TempDir() + "/disk")
	require.NoError(t, err)
	defer d.close()
	if d.err != nil {
		t.Log("no file system can be mounted here: a run of chaos says so")
		return
	}
	require.NoError(t, d.fill())
	require.NoError(t, d.empty())
	require.NoError(t, d.empty(), "twice")
	require.NoError(t, d.fill())
}

func TestAProxyMeetsWhatPasses(t *testing.T) {
	p, err := newProxy(t.TempDir() + "/nobody")
	require.NoError(t, err)
	defer func() { _ = p.listener.Close() }()
	assert.Zero(t, p.reset())
	assert.False(t, p.during(t.Context(), &p.mute, time.Millisecond), "nothing passes")
	assert.False(t, p.mute.Load())
}
