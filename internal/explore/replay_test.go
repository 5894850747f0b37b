package explore

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEverySeedIsReplayedAsItWas(t *testing.T) {
	for seed := range uint64(20) {
		f := find(t, Config{Seed: seed + 1}, lostWakeUp)
		r, err := parseReplay(f.Replay)
		require.NoError(t, err)
		e := newExploration(t, Config{}, lostWakeUp)
		for range 5 {
			again := e.replay(r)
			require.NotNil(t, again, f.Replay)
			require.Equal(t, f.Trace, again.Trace)
		}
		e.close()
	}
}

func TestReplayIsReadAsItIsWritten(t *testing.T) {
	for _, r := range []replayed{
		{program: 1, level: Locks, fixed: true},
		{program: 2, level: Atomics, fixed: true, deviations: []deviation{{3, 4}, {5, 0}}},
		{program: 3, level: Hand, schedule: 7, steps: 9},
	} {
		again, err := parseReplay(r.String())
		require.NoError(t, err)
		require.Equal(t, r, again)
	}
	for _, bad := range []string{"", "1", "x/locks/", "1/what/", "1/locks/x"} {
		_, err := parseReplay(bad)
		require.Error(t, err, bad)
	}
}

func TestShrinkKeepsWhatIsNeeded(t *testing.T) {
	var all []deviation
	for i := range 100 {
		all = append(all, deviation{i + 1, 1})
	}
	needs := func(numbers ...int) func([]deviation) bool {
		return func(d []deviation) bool {
			for _, n := range numbers {
				found := false
				for _, x := range d {
					found = found || x.n == n
				}
				if !found {
					return false
				}
			}
			return true
		}
	}
	require.Empty(t, shrink(all, 1000, needs()))
	require.Equal(t, []deviation{{17, 1}, {18, 1}, {90, 1}}, shrink(all, 1000, needs(17, 18, 90)))
	require.True(t, needs(5)(shrink(all, 3, needs(5))), "out of budget it still fails")
}

func TestReportSaysHowToReplay(t *testing.T) {
	f := find(t, Config{Level: Atomics}, checkThenAct)
	text := f.report(t.Name())
	require.Contains(t, text, "EXPLORE_REPLAY='"+f.Replay+"'")
	require.Contains(t, text, "-run '^TestReportSaysHowToReplay$'")
	require.True(t, strings.Contains(text, f.Trace))
}
