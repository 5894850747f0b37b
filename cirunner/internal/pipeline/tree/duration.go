package tree

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
)

// MaxTimeout is the longest that anything may be given, as in GitLab.
const MaxTimeout = 31 * 24 * time.Hour

// maxWords is how many bytes a duration may have.
const maxWords = 255

const durations = `a duration such as "1h 30m", "3 minutes 30 seconds" or "10s"`

// Duration reads a duration that is longer than nothing.
func (p *Reader) Duration(what string, n *Node, most time.Duration) (time.Duration, bool) {
	s, ok := "", n.Kind == Text || n.Kind == Integer || n.Kind == Float
	if ok {
		s = n.Text
	}
	d, err := ParseDuration(s)
	switch {
	case !ok || err != nil:
		p.Should(what, n, "%s", durations)
	case d <= 0:
		p.Errorf(n.At, "%s should be longer than nothing", what)
	case d > most:
		p.Errorf(n.At, "%s should be at most %v, not %s", what, most, words.Quote(s))
	default:
		return d, true
	}
	return 0, false
}

// units are what GitLab's durations are counted in, and ms, which are ours. A
// number without a unit is seconds.
var units = map[string]time.Duration{
	"ms": time.Millisecond, "millisecond": time.Millisecond,
	"": time.Second, "s": time.Second, "sec": time.Second, "second": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hr": time.Hour, "hour": time.Hour,
	"d": 24 * time.Hour, "dy": 24 * time.Hour, "day": 24 * time.Hour,
	"w": 7 * 24 * time.Hour, "wk": 7 * 24 * time.Hour, "week": 7 * 24 * time.Hour,
	"mo": 30 * 24 * time.Hour, "month": 30 * 24 * time.Hour,
	"y": 365 * 24 * time.Hour, "yr": 365 * 24 * time.Hour, "year": 365 * 24 * time.Hour,
}

var numbers = map[string]float64{
	"a": 1, "an": 1, "half": 0.5, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6,
	"seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12,
	"fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60,
}

// ParseDuration reads the words for durations that GitLab takes: "1h 30m",
// "1 hour and 30 minutes", "90", "1:30:00".
func ParseDuration(s string) (time.Duration, error) {
	if len(s) > maxWords {
		return 0, fmt.Errorf("too long for a duration")
	}
	if strings.Contains(s, ":") {
		return parseClock(s)
	}
	words := split(strings.ToLower(s))
	if len(words) == 0 {
		return 0, fmt.Errorf("no duration")
	}
	var sum float64
	for i := 0; i < len(words); i++ {
		if i > 0 && words[i] == "and" {
			continue
		}
		number, ok := numbers[words[i]]
		if !ok {
			var err error
			if number, err = strconv.ParseFloat(words[i], 64); err != nil || words[i][0] < '0' || words[i][0] > '9' {
				return 0, fmt.Errorf("%q is no number", words[i])
			}
		}
		unit := ""
		if i+1 < len(words) {
			i++
			unit = words[i]
		}
		length, known := units[unit]
		if !known {
			length, known = units[strings.TrimSuffix(unit, "s")]
		}
		if !known {
			return 0, fmt.Errorf("%q is no unit of time", unit)
		}
		sum += number * float64(length)
	}
	if sum > float64(100*365*24*time.Hour) {
		return 0, fmt.Errorf("too long")
	}
	return time.Duration(sum), nil
}

// parseClock reads hours, minutes and seconds, or minutes and seconds.
func parseClock(s string) (time.Duration, error) {
	parts := strings.Split(strings.TrimSpace(s), ":")
	if len(parts) > 3 {
		return 0, fmt.Errorf("%q is no time", s)
	}
	var sum int
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 16)
		if err != nil || i > 0 && n > 59 {
			return 0, fmt.Errorf("%q is no time", s)
		}
		sum = sum*60 + int(n)
	}
	return time.Duration(sum) * time.Second, nil
}

// split returns the numbers and words of a text.
func split(s string) []string {
	var words []string
	for s != "" {
		digits := func(r rune) bool { return r >= '0' && r <= '9' || r == '.' }
		letters := func(r rune) bool { return !digits(r) && r != ' ' && r != ',' && r != '\t' && r != '\n' }
		end := len(s) - len(strings.TrimLeftFunc(s, digits))
		if end == 0 {
			end = len(s) - len(strings.TrimLeftFunc(s, letters))
		}
		if end == 0 {
			s = s[1:]
			continue
		}
		words = append(words, s[:end])
		s = s[end:]
	}
	return words
}
