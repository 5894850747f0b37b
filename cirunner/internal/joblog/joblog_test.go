package joblog

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type memory struct {
	bytes.Buffer
	fail   error
	closed bool
}

func (m *memory) Write(p []byte) (int, error) {
	if m.fail != nil {
		return 0, m.fail
	}
	return m.Buffer.Write(p)
}

func (m *memory) Close() error { m.closed = true; return nil }

func TestLinesAreWholeHoweverTheyCome(t *testing.T) {
	const text = "first\nsecond line\n\nlast, without an end"
	for size := 1; size <= len(text); size++ {
		var file memory
		var lines []string
		l := New(&file, 0, func(p []byte, _ Kind) { lines = append(lines, string(p)) })
		for p := text; p != ""; {
			n := min(size, len(p))
			_, err := l.Write([]byte(p[:n]))
			require.NoError(t, err)
			p = p[n:]
		}
		require.NoError(t, l.Close())
		assert.Equal(t, text, file.String())
		assert.Equal(t, strings.Split(text, "\n"), lines)
		assert.True(t, file.closed)
	}
}

func TestTheRunnersOwnLinesBeginALine(t *testing.T) {
	var file memory
	var lines []string
	l := New(&file, 0, func(p []byte, _ Kind) { lines = append(lines, string(p)) })
	l.Printf("one %d", 1)
	_, _ = l.Write([]byte("open"))
	l.Printf("two\n")
	_, _ = l.Write([]byte("open"))
	l.Flush()
	l.Printf("three")
	require.NoError(t, l.Close())
	assert.Equal(t, "one 1\nopen\ntwo\nopen\nthree\n", file.String())
	assert.Equal(t, []string{"one 1", "open", "two", "open", "three"}, lines)
}

func TestALongLineIsShownInPiecesAndKeptWhole(t *testing.T) {
	var file memory
	var shown bytes.Buffer
	longest := 0
	l := New(&file, 0, func(p []byte, _ Kind) { shown.Write(p); longest = max(longest, len(p)) })
	line := bytes.Repeat([]byte("0123456789"), MaxLine/2)
	for p := line; len(p) > 0; {
		n := min(30_000, len(p))
		_, _ = l.Write(p[:n])
		p = p[n:]
	}
	require.NoError(t, l.Close())
	assert.Equal(t, line, file.Bytes())
	assert.Equal(t, line, shown.Bytes())
	assert.Equal(t, MaxLine, longest)
	assert.LessOrEqual(t, cap(l.partial), 2*MaxLine)
}

// The log beyond the limit is neither in the file nor shown: it is called so. The
// runner's own words are both.
func TestALimitIsTold(t *testing.T) {
	for size := 1; size <= 60; size++ {
		var file memory
		shown, beyond := "", ""
		l := New(&file, 10, func(line []byte, kind Kind) {
			if kind == Beyond {
				beyond += string(line) + "\n"
				return
			}
			shown += string(line) + "\n"
		})
		text := bytes.Repeat([]byte("12345\n"), 10)
		for p := text; len(p) > 0; {
			n := min(size, len(p))
			_, err := l.Write(p[:n])
			require.NoError(t, err, "the job goes on")
			p = p[n:]
		}
		l.Printf("the runner's own words are kept")
		require.NoError(t, l.Close())
		want := "12345\n1234\ncirunner: the log has reached its limit of 10 bytes; the job goes on, its output is not kept\n" +
			"the runner's own words are kept\n"
		assert.Equal(t, want, file.String())
		assert.Equal(t, want, shown)
		assert.Equal(t, "5\n"+strings.Repeat("12345\n", 8), beyond)
	}
}

// Who writes exactly as much as is allowed has lost nothing.
func TestALimitThatIsMet(t *testing.T) {
	var file memory
	l := New(&file, 6, func(_ []byte, kind Kind) { assert.Equal(t, Output, kind) })
	_, err := l.Write([]byte("12345\n"))
	require.NoError(t, err)
	require.NoError(t, l.Close())
	assert.Equal(t, "12345\n", file.String())
}

func TestAFileThatCannotTakeMore(t *testing.T) {
	full := errors.New("no space left")
	file := memory{}
	l := New(&file, 0, nil)
	_, err := l.Write([]byte("a\n"))
	require.NoError(t, err)
	file.fail = full
	_, err = l.Write([]byte("b\n"))
	require.ErrorIs(t, err, full)
	file.fail = nil
	_, err = l.Write([]byte("c\n"))
	require.ErrorIs(t, err, full, "a hole in the log is not papered over")
	require.ErrorIs(t, l.Close(), full)
	assert.Equal(t, "a\n", file.String())
}

func TestAttemptsAppend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for _, text := range []string{"one\n", "two\n"} {
		l, err := Create(path, 0, nil)
		require.NoError(t, err)
		_, _ = l.Write([]byte(text))
		require.NoError(t, l.Close())
	}
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "one\ntwo\n", string(data))
}

func TestManyWritersTearNoLine(t *testing.T) {
	var file memory
	l := New(&file, 0, nil)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				l.Printf("%s", strings.Repeat("x", 100))
			}
		})
	}
	wg.Wait()
	require.NoError(t, l.Close())
	assert.Equal(t, strings.Repeat(strings.Repeat("x", 100)+"\n", 1600), file.String())
}
