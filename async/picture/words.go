package picture

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// This file is how names, numbers and durations are written.

// Alike returns name with each run of digits as one #, so that the names of a series are equal.
func Alike(name string) string {
	if strings.IndexFunc(name, isDigit) < 0 {
		return name
	}
	var b strings.Builder
	digits := false
	for _, r := range name {
		if isDigit(r) {
			if !digits {
				b.WriteByte('#')
			}
			digits = true
			continue
		}
		digits = false
		b.WriteRune(r)
	}
	return b.String()
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

// maxName is how many characters of a name or text are printed.
const maxName = 120

// clean returns text as one line of printed characters, not too long.
func clean(text string) string {
	if utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return cut(text, maxName)
	}
	text = strings.ToValidUTF8(text, "�")
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	return cut(strings.TrimSpace(text), maxName)
}

// cut returns the first n characters of text; 0: all.
func cut(text string, n int) string {
	if n <= 0 || utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	default:
		return d.Round(time.Second).String()
	}
}

func tasks(n int) string { return count(n) + " " + plural("task", n) }

func plural(noun string, n int) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// count writes a number with commas between thousands.
func count(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
