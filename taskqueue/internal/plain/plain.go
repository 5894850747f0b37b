// Package plain makes what tasks bring along fit to be shown to people. Ids, payloads
// and errors come from anybody who may enqueue: they may have bytes that move the
// cursor of a terminal, turn text around, or look like another line.
package plain

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s as it can be shown anywhere: what has no picture of its own, and what
// changes the direction of the text, is written as \xNN or \u{NNNN}. A line break and a
// tabulator stay.
func Text(s string) string { return visible(s, true) }

// Line is Text in one line: line breaks are written as \n.
func Line(s string) string { return visible(s, false) }

func visible(s string, lines bool) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return hidden(r, lines) }) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		_, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			_, _ = fmt.Fprintf(&b, `\x%02x`, s[i])
		case !hidden(r, lines):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < 0x80:
			_, _ = fmt.Fprintf(&b, `\x%02x`, r)
		default:
			_, _ = fmt.Fprintf(&b, `\u{%x}`, r)
		}
	}
	return b.String()
}

// hidden reports whether a character has no picture, or changes that of others.
func hidden(r rune, lines bool) bool {
	switch {
	case r == '\n' || r == '\t':
		return !lines
	case r == ' ', r == '\u200d': // the latter joins the parts of an emoji
		return false
	}
	return !unicode.IsGraphic(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)
}

// Head returns the beginning of s: at most n bytes, and no part of a character.
func Head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
