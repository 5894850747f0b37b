// Package words makes the pieces of messages: quotes, lists of words, the word that
// was meant.
package words

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxQuoted is how many characters of the file are in one message.
const MaxQuoted = 60

// Quote returns a piece of the file for a message: in quotes, in one line, and
// not for ever.
func Quote(s string) string {
	if utf8.RuneCountInString(s) > MaxQuoted {
		s = string([]rune(s)[:MaxQuoted]) + "…"
	}
	return strconv.Quote(s)
}

// HasControl reports whether a text has a control character.
func HasControl(s string) bool { return strings.ContainsFunc(s, unicode.IsControl) }

// Like returns a question about the one of some words that is most like s, or
// nothing when none is like it.
func Like(s string, words []string) string {
	if len(s) > MaxQuoted {
		return ""
	}
	best, least := "", 1+(len(s)+2)/4
	for _, word := range words {
		if d := Distance(s, word); d < least {
			best, least = word, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + Quote(best) + "?"
}

// Distance returns how many bytes have to be put in, taken out, replaced or
// swapped with the next to make a out of b: the optimal string alignment. Words
// that are too long to compare are as far from each other as they are long.
func Distance(a, b string) int {
	if len(a) > MaxQuoted || len(b) > MaxQuoted {
		return max(len(a), len(b))
	}
	var before, last, row [MaxQuoted + 1]int // of the three last prefixes of a
	for j := range len(b) {
		row[j+1] = j + 1
	}
	for i := 1; i <= len(a); i++ {
		before, last = last, row
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replaced := last[j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			row[j] = min(last[j]+1, row[j-1]+1, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}

// SortedKeys returns the keys of a map, in order.
func SortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// OneOf writes some words as a choice: a, b or c.
func OneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Chain returns the names of a cycle with a verb between them, the first again
// at the end, not more of them than can be read.
func Chain(names []string, verb string) string {
	const maxChain = 12
	var b strings.Builder
	for i, name := range names {
		if i == maxChain {
			b.WriteString("…, which " + verb + " ")
			break
		}
		b.WriteString(Quote(name) + " " + verb + " ")
	}
	return b.String() + Quote(names[0])
}
