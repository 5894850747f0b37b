package lockstest

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Fewer is a fifth of n with the race detector, which makes all ten times as slow. The full
// counts are those of a run without it.
func Fewer(n int) int {
	if raceDetector {
		return n / 5
	}
	return n
}

// number reads one from the environment.
func number(t testing.TB, variable string, otherwise uint64) uint64 {
	return setting(t, variable, otherwise, func(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) })
}

// duration reads one from the environment.
func duration(t testing.TB, variable string, otherwise time.Duration) time.Duration {
	return setting(t, variable, otherwise, time.ParseDuration)
}

func setting[T any](t testing.TB, variable string, otherwise T, parse func(text string) (T, error)) T {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	v, err := parse(text)
	require.NoError(t, err, variable)
	return v
}
