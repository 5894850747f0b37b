package board

import (
	"bytes"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// Clean returns a line of output as plain text: what a job writes must neither
// move the cursor of whoever looks on, nor colour what follows, nor rename the
// window. It is the last version of a line that was overwritten by means of carriage returns;
// escape sequences are taken out, tabs are spaces, and what cannot
// be printed is left out.
func Clean(line []byte) string {
	line = bytes.TrimRight(line, "\r\n")
	if i := bytes.LastIndexByte(line, '\r'); i >= 0 {
		line = line[i+1:]
	}
	text := strings.ToValidUTF8(string(line), "?")
	if !plain(text) {
		text = strings.Map(printable, strings.ReplaceAll(ansi.Strip(text), "\t", "    "))
	}
	return text
}

// plain reports whether there is nothing to clean, as there is in most lines.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func printable(c rune) rune {
	if unicode.IsPrint(c) || c == ' ' {
		return c
	}
	return -1
}
