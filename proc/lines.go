package proc

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// LongestLine is how many bytes of a line a [LineWriter] keeps.
const LongestLine = 64 << 10

// A LineWriter is a writer that calls a function for each line: see [Lines].
type LineWriter struct {
	f    func(line string)
	line []byte // what has come of a line that has not ended, at most LongestLine
	cut  int    // how many bytes of it are not kept
	last byte   // of it, kept or not
}

// Lines returns a writer that calls f for each line that is written to it.
//
//	proc.Command{Stdout: proc.Lines(func(line string) { log.Print("step: ", line) })}
//
// # Details
//
// A line is given without its end, which is \n or \r\n. [Run] gives f the last line when the
// output has ended, also if it has no end; who writes to the writer otherwise calls Close.
//
// A line beyond [LongestLine] is cut, and ends with how much is left out:
// "... (1000000 bytes cut)". So no line needs more memory than that, however long it is.
//
// f is called by the task that reads the output, one call at a time, and the command waits for it
// once the pipe is full. If f panics or calls Goexit the command is stopped, as with any other writer.
// Stdout and Stderr that are one LineWriter are one stream; with two of them, the lines of each are
// in order, and f is called by two tasks at the same time.
func Lines(f func(line string)) *LineWriter {
	if f == nil {
		panic("proc: Lines(nil): give it the function that takes the lines")
	}
	return &LineWriter{f: f}
}

// Write calls the function for each line that ends in p. It never fails.
func (w *LineWriter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte{'\n'})
		w.add(part)
		if ended {
			w.give()
		}
		rest = after
	}
	return len(p), nil
}

// Close gives the last line, if one has begun and has no end. The writer can be written to again.
// It never fails.
func (w *LineWriter) Close() error {
	if len(w.line) > 0 {
		w.give()
	}
	return nil
}

// add notes a part of a line.
func (w *LineWriter) add(part []byte) {
	kept := min(len(part), LongestLine-len(w.line))
	w.line = append(w.line, part[:kept]...)
	w.cut += len(part) - kept
	if len(part) > 0 {
		w.last = part[len(part)-1]
	}
}

// give calls the function with the line, and begins the next.
func (w *LineWriter) give() {
	line := string(w.line)
	switch {
	case w.cut == 0:
		line = strings.TrimSuffix(line, "\r")
	case w.last == '\r':
		w.cut-- // of the end, not of the line
	}
	if w.cut > 0 {
		whole := wholeRunes(line)
		line = fmt.Sprintf("%s... (%d bytes cut)", whole, w.cut+len(line)-len(whole))
	}
	w.line, w.cut = w.line[:0], 0
	w.f(line)
}

// wholeRunes returns s without the first bytes of a character of which the others were cut.
func wholeRunes(s string) string {
	for i := 1; i < utf8.UTFMax && i <= len(s); i++ {
		if b := s[len(s)-i]; utf8.RuneStart(b) {
			if !utf8.FullRuneInString(s[len(s)-i:]) {
				return s[:len(s)-i]
			}
			break
		}
	}
	return s
}
