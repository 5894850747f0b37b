package picture

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// This file is how names, numbers and durations are written.

// Alike returns name with each number in it as one #, so that the names of a series are equal: runs of digits,
// hexadecimal numbers of four digits or more, and ids of sixteen letters and digits or more.
func Alike(name string) string {
	if strings.IndexFunc(name, isDigit) < 0 {
		return name
	}
	var b strings.Builder
	for len(name) > 0 {
		n := len(name) - len(strings.TrimLeftFunc(name, isWord))
		if n > 0 {
			alikeWord(&b, name[:n])
		} else {
			n = len(name) - len(strings.TrimLeftFunc(name, func(r rune) bool { return !isWord(r) }))
			b.WriteString(name[:n])
		}
		name = name[n:]
	}
	return b.String()
}

// Lengths of words that are numbers: in hexadecimal, with a digit, and in other alphabets, with a digit and
// no small letter, or with several digits.
const (
	longHex = 4
	longID  = 16
	inID    = 3
)

// alikeWord writes word, which has only letters and digits.
func alikeWord(b *strings.Builder, word string) {
	digits, others, small := 0, 0, 0
	for _, r := range word {
		if isDigit(r) {
			digits++
			continue
		}
		if !isHex(r) {
			others++
		}
		if unicode.IsLower(r) {
			small++
		}
	}
	hex := len(word) >= longHex && digits > 0 && others == 0
	id := len(word) >= longID && digits > 0 && (small == 0 || digits >= inID)
	if hex || id {
		b.WriteByte('#')
		return
	}
	before := false
	for _, r := range word {
		if !isDigit(r) {
			b.WriteRune(r)
		} else if !before {
			b.WriteByte('#')
		}
		before = isDigit(r)
	}
}

func isWord(r rune) bool { return unicode.IsLetter(r) || isDigit(r) }

func isHex(r rune) bool { return isDigit(r) || 'a' <= r && r <= 'f' || 'A' <= r && r <= 'F' }

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
