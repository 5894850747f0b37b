// Package retryafter reads when a server wants to be asked again.
package retryafter

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

// Of returns how long the server asks to be left alone: for how many
// seconds, or until a date (RFC 9110, section 10.2.3). It returns 0 for what is
// no such thing, or has passed.
//
// A date is on the server's clock, and so is the answer's own Date: their
// difference does not depend on ours, which may be wrong. Only without it now
// counts.
func Of(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if d, ok := Seconds(value); ok {
		return d
	}
	until, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	if sent, err := http.ParseTime(h.Get("Date")); err == nil {
		now = sent
	}
	return max(until.Sub(now), 0)
}

// Seconds reads a number of seconds that is not negative, and reports whether it
// is one. One that is more than a Duration holds is as much as that.
func Seconds(s string) (time.Duration, bool) {
	if s == "" || s[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case n < 0:
		return 0, false
	case err != nil && n == 0: // n is the greatest there is if s was out of range
		return 0, false
	case n > int64(math.MaxInt64/time.Second):
		return math.MaxInt64, true
	}
	return time.Duration(n) * time.Second, true
}
