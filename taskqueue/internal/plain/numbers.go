package plain

import (
	"fmt"
	"math"
	"strconv"
)

// Count writes a number with its thousands apart.
func Count[T int | int64](n T) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Of writes how many there are of what a noun names.
func Of(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Count(n) + " " + noun
}

// Rate writes a number of events a second.
func Rate(r float64) string {
	switch {
	case r == 0:
		return "0"
	case r < 0.01:
		return "<0.01"
	case r < 1:
		return strconv.FormatFloat(r, 'f', 2, 64)
	case r < 100:
		return strconv.FormatFloat(r, 'f', 1, 64)
	}
	return Count(int64(math.Round(r)))
}

// Span writes a number of seconds as people do.
func Span(seconds float64) string {
	sign := ""
	if seconds < 0 {
		sign, seconds = "-", -seconds
	}
	s := int64(seconds)
	switch {
	case seconds < 0.0005:
		return "0 s"
	case seconds < 0.9995:
		return fmt.Sprintf("%s%.0f ms", sign, seconds*1000)
	case seconds < 9.95:
		return fmt.Sprintf("%s%.1f s", sign, seconds)
	case s < 120:
		return fmt.Sprintf("%s%d s", sign, s)
	case s < 2*3600:
		return fmt.Sprintf("%s%d min %d s", sign, s/60, s%60)
	case s < 48*3600:
		return fmt.Sprintf("%s%d h %d min", sign, s/3600, s/60%60)
	}
	return fmt.Sprintf("%s%s days", sign, Count(s/86400))
}
