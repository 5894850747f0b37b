package plain_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/taskqueue/internal/plain"
)

func TestNumbersAsPeopleWriteThem(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", -999: "-999", 1234567: "1,234,567"} {
		assert.Equal(t, want, plain.Count(n))
	}
	for r, want := range map[float64]string{0: "0", 0.001: "<0.01", 0.5: "0.50", 12.34: "12.3", 1234.5: "1,235"} {
		assert.Equal(t, want, plain.Rate(r))
	}
	for s, want := range map[float64]string{
		0: "0 s", 0.0001: "0 s", 0.25: "250 ms", 0.9999: "1.0 s", 9.99: "9 s", 1.25: "1.2 s", 61: "61 s", 119.9: "119 s", 125: "2 min 5 s",
		7200: "2 h 0 min", 86400 * 3: "3 days", 86400 * 4000: "4,000 days", -5: "-5.0 s",
	} {
		assert.Equal(t, want, plain.Span(s), "%v", s)
	}
}
