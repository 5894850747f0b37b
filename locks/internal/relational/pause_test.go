package relational

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhoWaitsLongLooksSeldom(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct{ least, quiet, want time.Duration }{
		{2 * ms, 0, 2 * ms}, {2 * ms, 500 * ms, 2 * ms}, {2 * ms, 5 * time.Second, 20 * ms}, {2 * ms, time.Hour, longest}, {50 * ms, time.Hour, 50 * ms},
	} {
		require.Equal(t, c.want, Pause(c.least, c.quiet), "%+v", c)
	}
}
