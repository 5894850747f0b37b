//go:build unix

package proc

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async/asynctest"
)

// linesOf is what a writer gives that is written text in parts of so many bytes.
func linesOf(text string, size int) (lines []string) {
	w := Lines(func(line string) { lines = append(lines, line) })
	for rest := []byte(text); len(rest) > 0; {
		n := min(size, len(rest))
		_, _ = w.Write(rest[:n])
		rest = rest[n:]
	}
	_ = w.Close()
	return lines
}

func TestLinesAreTheSameInWhateverPartsTheyCome(t *testing.T) {
	for text, want := range map[string][]string{
		"":                nil,
		"one\ntwo\n":      {"one", "two"},
		"one\r\n\r\ntwo":  {"one", "", "two"},
		"\n\na":           {"", "", "a"},
		"10 %\r20 %\rend": {"10 %\r20 %\rend"},
	} {
		for size := 1; size <= len(text)+1; size++ {
			assert.Equal(t, want, linesOf(text, size), "%q in parts of %d", text, size)
		}
	}
}

func TestALineBeyondTheBoundIsCutAndSaysSo(t *testing.T) {
	long := strings.Repeat("x", LongestLine)
	for _, c := range []struct{ line, want string }{
		{long, long},
		{long + "y", long + "... (1 bytes cut)"},
		{long + strings.Repeat("y", 1_000_000), long + "... (1000000 bytes cut)"},
		{long + "\r", long}, // of its end nothing counts
		{long[1:] + "\r\r", long[1:] + "\r"},
		{long + "y\r", long + "... (1 bytes cut)"},
		{long[1:] + "é!", long[1:] + "... (3 bytes cut)"}, // the bound is in the middle of é
	} {
		for _, size := range []int{1000, 32 << 10, 2_000_000} {
			assert.Equal(t, []string{"before", c.want, "after"}, linesOf("before\n"+c.line+"\nafter", size))
		}
	}
	w := Lines(func(line string) { assert.True(t, utf8.ValidString(line)) })
	_, _ = w.Write(bytes.Repeat([]byte("é"), LongestLine))
	assert.LessOrEqual(t, cap(w.line), 2*LongestLine)
	require.NoError(t, w.Close())
}

func TestACommandsLastLineNeedsNoEnd(t *testing.T) {
	var lines []string
	c := bash(`echo one; echo two >&2; printf 'three\nfour'`)
	w := Lines(func(line string) { lines = append(lines, line) })
	c.Stdout, c.Stderr = w, w // one stream
	for range 2 {             // the second command begins a line of its own
		_, err := Run(asynctest.Context(t), c)
		require.NoError(t, err)
	}
	assert.Equal(t, []string{"one", "two", "three", "four", "one", "two", "three", "four"}, lines)
}

func TestALineOfAMegabyteDoesNotStopTheCommand(t *testing.T) {
	var lines []string
	c := bash(`head -c 1000000 /dev/zero | tr '\0' x; echo; echo done`)
	c.Stdout = Lines(func(line string) { lines = append(lines, line) })
	result, err := Run(asynctest.Context(t), c)
	require.NoError(t, err)
	assert.Zero(t, result.Code)
	require.Len(t, lines, 2)
	assert.True(t, strings.HasSuffix(lines[0], fmt.Sprintf("... (%d bytes cut)", 1_000_000-LongestLine)), lines[0][LongestLine:])
	assert.Equal(t, "done", lines[1])
}

func TestAFunctionOfLinesThatPanicsAtTheLastLineIsAnError(t *testing.T) {
	c := bash(`printf last`)
	c.Stdout = Lines(func(line string) { panic("of the user: " + line) })
	_, err := Run(asynctest.Context(t), c)
	var failed *OutputError
	require.ErrorAs(t, err, &failed)
	assert.ErrorContains(t, err, "of the user: last")
}

func TestLinesOfNobody(t *testing.T) {
	assert.PanicsWithValue(t, "proc: Lines(nil): give it the function that takes the lines", func() { Lines(nil) })
}
