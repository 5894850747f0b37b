//go:build unix

package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/clitest"
)

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestACommandReadsFromAReader(t *testing.T) {
	large := strings.Repeat("0123456789", 100_000)
	for name, in := range map[string]io.Reader{
		"":            strings.NewReader(large),
		"byte a time": iotest.OneByteReader(strings.NewReader(large[:1000])),
		"end at once": iotest.DataErrReader(strings.NewReader(large)),
		"nothing":     strings.NewReader(""),
	} {
		want := map[string]string{"byte a time": large[:1000], "nothing": ""}
		var out bytes.Buffer
		c := Command{Args: []string{"cat"}, Stdin: in, Stdout: &out}
		_, err := Run(asynctest.Context(t), c)
		require.NoError(t, err)
		if text, ok := want[name]; ok {
			assert.Equal(t, text, out.String(), name)
		} else {
			assert.Equal(t, large, out.String(), name)
		}
	}
}

func TestANilFileIsTheNullDevice(t *testing.T) {
	var none *os.File
	_, err := Run(asynctest.Context(t), Command{Args: []string{"cat"}, Stdin: none, Stdout: none, Stderr: none})
	assert.NoError(t, err)
}

// A command need not read its input to the end.
func TestACommandNeedNotReadItsInput(t *testing.T) {
	for _, script := range []string{"exit 0", "head -c 10", "exec <&-; exit 0"} {
		c := bash(script)
		c.Stdin = readerFunc(func(p []byte) (int, error) { return len(p), nil })
		_, err := Run(asynctest.Context(t), c)
		assert.NoError(t, err, script)
	}
}

// A Read that never returns keeps nothing but its own task, which stays on
// record until it does.
func TestAReaderThatBlocksDoesNotHangIt(t *testing.T) {
	for _, script := range []string{"exit 7", "head -c 3 >/dev/null; exit 7"} {
		r, w := io.Pipe()
		go func() { _, _ = io.WriteString(w, "abc") }() // and no end
		c := bash(script)
		c.Stdin = r
		result, err := Run(asynctest.Context(t), c)
		assert.Equal(t, 7, result.Code)
		assert.EqualError(t, err, "step: exit status 7")
		require.NoError(t, r.CloseWithError(errors.New("late, and nobody wants to know")))
	}
	clitest.Eventually(t, "the end of the readers", func() bool {
		buf := make([]byte, 1<<20)
		return !strings.Contains(string(buf[:runtime.Stack(buf, true)]), "(*feed).carry")
	})
}

func TestABlockedReaderDoesNotKeepAStop(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	c := bash("trap 'exit 7' TERM; sleep 600 & echo ready; wait")
	c.Stdin = r
	result, _, err := cancelled(t, c)
	assert.Equal(t, 7, result.Code)
	assert.ErrorIs(t, err, errUser)
}

// The part that a command has got of an input that fails is not the whole, so it must not
// see an end.
func TestAReaderThatFailsStopsIt(t *testing.T) {
	errTorn := errors.New("torn")
	for name, in := range map[string]struct {
		read func([]byte) (int, error)
		as   func(t *testing.T, err error)
	}{
		"fails": {func([]byte) (int, error) { return 0, errTorn }, func(t *testing.T, err error) {
			assert.ErrorIs(t, err, errTorn)
			assert.EqualError(t, err, "step: exit status 7, stopped: stdin is lost: torn")
		}},
		"panics": {func([]byte) (int, error) { panic("of the reader") }, func(t *testing.T, err error) {
			var panicked *async.PanicError
			require.ErrorAs(t, err, &panicked)
			assert.Equal(t, "of the reader", panicked.Value)
		}},
		"exits": {func([]byte) (int, error) { runtime.Goexit(); return 0, nil }, func(t *testing.T, err error) {
			assert.ErrorIs(t, err, async.ErrGoexit)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			out := newSign()
			c := bash("trap 'exit 7' TERM; (read -r; echo first; exec cat; ) <&0 & exec 3<&0; wait $!; echo the end was seen; exit 3")
			c.Stdout = out
			first := strings.NewReader("first\n")
			c.Stdin = readerFunc(func(p []byte) (int, error) {
				if n, err := first.Read(p); err == nil {
					return n, nil
				}
				clitest.Eventually(t, "the first line", func() bool { return strings.Contains(out.String(), "first") })
				return in.read(p)
			})
			result, err := Run(asynctest.Context(t), c)
			assert.Equal(t, 7, result.Code)
			assert.NotContains(t, out.String(), "the end was seen")
			require.ErrorAs(t, result.Cause, new(*InputError))
			in.as(t, err)
		})
	}
}

// Processes that the command has left may go on reading while they linger.
func TestWhatLingersMayRead(t *testing.T) {
	r, w := io.Pipe()
	out := newSign()
	c := bash("exec 3<&0; (read -r line <&3; echo got $line) & exit 0")
	c.Stdin, c.Stdout = r, out
	c.Started = func(pid int) {
		go func() {
			for syscall.Kill(pid, 0) == nil {
				runtime.Gosched()
			}
			_, _ = io.WriteString(w, "late\n")
			_ = w.Close()
		}()
	}
	result, err := Run(asynctest.Context(t), c)
	require.NoError(t, err)
	assert.False(t, result.Left)
	assert.Equal(t, "got late\n", out.String())
}

func TestAReaderOfACommandThatIsNotStartedIsNotRead(t *testing.T) {
	ctx, cancel := context.WithCancel(asynctest.Context(t))
	in := readerFunc(func([]byte) (int, error) { t.Error("read"); return 0, io.EOF })
	_, err := Run(ctx, Command{Args: []string{"/no/such/program"}, Stdin: in, Stdout: newSign(), Stderr: newSign()})
	assert.ErrorIs(t, err, os.ErrNotExist)
	cancel()
	_, err = Run(ctx, Command{Args: []string{"cat"}, Stdin: in})
	assert.ErrorIs(t, err, context.Canceled)
}

// A reader that fails with an error around io.EOF has failed: the command is not to take a piece for the whole.
func TestAReaderThatFailsWithAnErrorAroundEOF(t *testing.T) {
	broke := fmt.Errorf("the connection to the store broke: %w", io.EOF)
	_, err := Run(t.Context(), Command{Args: []string{"cat"}, Stdin: io.MultiReader(strings.NewReader("half of it"), iotest.ErrReader(broke))})
	var input *InputError
	require.ErrorAs(t, err, &input)
	assert.ErrorIs(t, err, broke)
}
