package page

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A value with none beside it is seen as well as a line is.
func TestAValueAloneIsARing(t *testing.T) {
	y := func(v float64) float64 { return v }
	assert.Equal(t, "M58.0 1.0L68.0 2.0M86.0 5.0a2 2 0 1 0 4 0a2 2 0 1 0 -4 0", path([]float64{1, 2, none, 5}, 30, y))
	assert.Equal(t, "M56.0 3.0a2 2 0 1 0 4 0a2 2 0 1 0 -4 0", path([]float64{3}, 30, y))
}
