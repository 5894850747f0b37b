package scheduler_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSoak runs random programs, each other than any before, for as long as SOAK
// says: make soak. Without it, for a moment.
func TestSoak(t *testing.T) {
	d := 500 * time.Millisecond
	if s := os.Getenv("SOAK"); s != "" {
		var err error
		d, err = time.ParseDuration(s)
		require.NoError(t, err, "SOAK is a duration, such as 5m")
	}
	start := time.Now()
	first := uint64(start.UnixNano())
	told := start
	for seed := first; time.Since(start) < d; seed++ {
		if wrong := new(progRun).run(t, progBytes(seed)); len(wrong) > 0 {
			t.Fatalf("program %d: %v", seed, wrong)
		}
		if wrong := (&orderRun{data: orderBytes(seed)}).run(t); wrong != "" {
			t.Fatalf("order %d: %s", seed, wrong)
		}
		if time.Since(told) > 30*time.Second {
			told = time.Now()
			t.Logf("%v, programs: %d", time.Since(start).Round(time.Second), 2*(seed-first))
		}
	}
}
