package lease_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/lease"
)

const ms = time.Millisecond

func TestOneFormulaSaysUntilWhenATermIsBelievedAndWhenItIsRenewed(t *testing.T) {
	for _, c := range []struct {
		length, margin, early, due, latest, again, patience time.Duration
	}{
		{0, 100 * ms, 0, 0, 0, 0, 0},
		{-time.Second, 100 * ms, 0, 0, 0, 0, 0},
		{100 * ms, 101 * ms, 27 * ms, 30 * ms, 32 * ms, 0, 0}, // shorter than its margin
		{600 * ms, 106 * ms, 162 * ms, 180 * ms, 192 * ms, 50 * ms, 100 * ms},
		{time.Second, 110 * ms, 270 * ms, 300 * ms, 320 * ms, time.Second / 12, time.Second / 6},
		{15 * time.Second, 1650 * ms, 4050 * ms, 4500 * ms, 4800 * ms, 1250 * ms, 2500 * ms},
		{20 * time.Second, 2200 * ms, 5400 * ms, 6000 * ms, 6400 * ms, 20 * time.Second / 12, 20 * time.Second / 6},
		{time.Minute, 2600 * ms, 16200 * ms, 18 * time.Second, 19200 * ms, 5 * time.Second, 10 * time.Second},
		{24 * time.Hour, 866_000 * ms, 23_328_000 * ms, 25_920_000 * ms, 27_648_000 * ms, 2 * time.Hour, 4 * time.Hour},
	} {
		t.Run(c.length.String(), func(t *testing.T) {
			const granted = time.Hour
			term := lease.Term{Granted: granted, Length: c.length}
			assert.Equal(t, c.margin, lease.Margin(c.length), "margin")
			assert.Equal(t, granted+max(c.length, 0), term.End())
			assert.Equal(t, granted+max(c.length-c.margin, 0), term.Believed())
			early, due := term.Renewal(0)
			_, latest := term.Renewal(1)
			assert.Equal(t, granted+c.early, early)
			assert.Equal(t, granted+c.due, due)
			assert.Equal(t, granted+c.latest, latest)
			if term.Believed() > granted {
				assert.Equal(t, granted+c.again, term.Again(granted))
			}
			assert.Equal(t, c.patience, term.Patience(granted))
			assert.Equal(t, time.Duration(0), term.Patience(term.Believed()), "then the holder gives up")
		})
	}
}

func TestATermThatNeverEndsDoesNotOverflow(t *testing.T) {
	term := lease.Term{Granted: time.Hour, Length: math.MaxInt64}
	assert.Equal(t, time.Duration(math.MaxInt64), term.End())
	assert.Greater(t, term.Believed(), time.Hour)
	assert.Equal(t, time.Duration(math.MaxInt64), term.Again(math.MaxInt64-1))
}

// FuzzTerm checks what any formula for terms has to keep.
func FuzzTerm(f *testing.F) {
	f.Add(int64(time.Hour), int64(15*time.Second), 0.5, int64(time.Second))
	f.Add(int64(0), int64(math.MaxInt64), 1.0, int64(math.MaxInt64))
	f.Add(int64(time.Hour), int64(-1), math.NaN(), int64(-1))
	f.Fuzz(func(t *testing.T, granted, length int64, jitter float64, elapsed int64) {
		term := lease.Term{Granted: max(time.Duration(granted), 0), Length: time.Duration(length)}
		now := term.Granted + max(min(time.Duration(elapsed), math.MaxInt64-term.Granted), 0)
		early, due := term.Renewal(jitter)
		assert.GreaterOrEqual(t, lease.Margin(term.Length), 100*ms, "the fixed part")
		longer := max(term.Length, term.Length+1)
		assert.LessOrEqual(t, lease.Margin(term.Length), lease.Margin(longer), "it grows with the length")
		assert.LessOrEqual(t, term.Granted, early)
		assert.LessOrEqual(t, early, due)
		assert.LessOrEqual(t, term.Believed(), term.End())
		if term.Length > 200*ms && term.End() < math.MaxInt64 {
			assert.GreaterOrEqual(t, term.End()-term.Believed(), lease.Margin(term.Length))
			assert.Less(t, due, term.Believed())
			assert.LessOrEqual(t, due-term.Granted, term.Length/3, "a store may count a third for a gap")
			assert.GreaterOrEqual(t, due-term.Granted, term.Length/3-term.Length/30-10, "a tenth of that less")
			assert.GreaterOrEqual(t, term.Again(due), due)
		}
		p := term.Patience(now)
		assert.True(t, p >= 0 && p <= max(term.Length, 0)/6+1)
		if p > 0 {
			assert.LessOrEqual(t, now+p, term.Believed(), "no answer is waited for that comes too late")
		}
	})
}
