package sqlstore

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A process that is stopped while it reads its two clocks does not find that they have parted.
func TestClocksAreReadAtOneInstant(t *testing.T) {
	for _, stopped := range []int{1, 2, 3} { // before which reading
		now, readings := int64(1000), 0
		read := func() int64 {
			if readings++; readings == stopped {
				now += 2 * maxStep
			}
			now++
			return now
		}
		wall, steady := together(read, read)
		assert.Equal(t, int64(1), wall-steady, "stopped before reading %d", stopped)
	}
}
