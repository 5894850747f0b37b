package view

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// maxTold is how many notices can be written once more.
const maxTold = 100

// paint replaces the lines on the terminal, in one write.
func (s *Screen) paint(lines []string, width, height int) error {
	s.mu.Lock()
	notices := s.notices
	s.notices = nil
	s.mu.Unlock()
	s.told = append(s.told, notices...)
	s.told = slices.Clone(s.told[max(len(s.told)-maxTold, 0):])
	unknown := s.unknown || len(s.drawn) > 0 && width != s.width
	if !unknown && len(notices) == 0 && slices.Equal(lines, s.drawn) {
		return nil
	}
	var b strings.Builder
	switch {
	case unknown:
		b.WriteString("\x1b[H\x1b[J")
		notices = fitting(s.told, width, height-1-len(lines))
	case len(s.drawn) > 0:
		fmt.Fprintf(&b, "\x1b[%dA", len(s.drawn))
	}
	b.WriteByte('\r')
	for _, l := range slices.Concat(wrapped(notices, width), lines) {
		b.WriteString(l + "\x1b[K\r\n")
	}
	b.WriteString("\x1b[J") // what was drawn below
	s.drawn, s.width, s.unknown = lines, width, false
	_, err := io.WriteString(s.out, b.String())
	return err
}

// wrapped returns the lines that notices take on a terminal of a width.
func wrapped(notices []string, width int) []string {
	var lines []string
	for _, n := range notices {
		lines = append(lines, strings.Split(ansi.Wrap(n, width, ""), "\n")...)
	}
	return lines
}

// fitting returns the last notices that have room in so many rows.
func fitting(notices []string, width, rows int) []string {
	from := len(notices)
	for from > 0 {
		if rows -= len(wrapped(notices[from-1:from], width)); rows < 0 {
			break
		}
		from--
	}
	return notices[from:]
}
