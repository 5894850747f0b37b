package retryafter

import (
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestRetryAfterIsReadInBothForms(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name, value, date string
		want              time.Duration
	}{
		{"none", "", "", 0},
		{"seconds", "120", "", 2 * time.Minute},
		{"no seconds", "0", "", 0},
		{"less than none", "-5", "", 0},
		{"with a sign", "+5", "", 0},
		{"a fraction", "1.5", "", 0},
		{"more than there are", "9223372037", "", math.MaxInt64},
		{"more than a number holds", "99999999999999999999", "", math.MaxInt64},
		{"a word", "soon", "", 0},
		{"a date", "Sun, 01 Mar 2026 12:00:30 GMT", "", 30 * time.Second},
		{"a date in an old form", "Sunday, 01-Mar-26 12:00:30 GMT", "", 30 * time.Second},
		{"a date that has passed", "Sun, 01 Mar 2026 11:00:00 GMT", "", 0},
		{"a date by a clock that is an hour ahead", "Sun, 01 Mar 2026 13:00:30 GMT", "Sun, 01 Mar 2026 13:00:00 GMT", 30 * time.Second},
		{"a date by a clock that is an hour behind", "Sun, 01 Mar 2026 11:00:30 GMT", "Sun, 01 Mar 2026 11:00:00 GMT", 30 * time.Second},
		{"a date, and a clock one cannot read", "Sun, 01 Mar 2026 12:00:30 GMT", "now", 30 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := http.Header{}
			h.Set("Retry-After", test.value)
			h.Set("Date", test.date)
			assert.Equal(t, test.want, Of(h, now))
		})
	}
}
