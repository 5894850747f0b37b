//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/clipperhouse/displaywidth"
	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/term"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
)

const (
	enters = "\x1b[?1049h"
	leaves = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
)

// A screen is the other side of a terminal.
type screen struct {
	*testing.T
	*os.File
	cmd    *exec.Cmd
	before *term.State // of the terminal

	mu   sync.Mutex
	text bytes.Buffer
	done chan struct{} // closed when nobody writes to the terminal any more
}

// onTerminal starts a program on a terminal of its own.
func onTerminal(t *testing.T, cmd *exec.Cmd, store string, env ...string) *screen {
	t.Helper()
	cmd.Env = append(os.Environ(), "TASKQ_TEST=1", "TERM=xterm", "NO_COLOR=", "TASKQ_STORE="+store)
	cmd.Env = append(cmd.Env, env...)
	f, tty, err := pty.Open()
	require.NoError(t, err)
	require.NoError(t, pty.Setsize(f, &pty.Winsize{Cols: 100, Rows: 30}))
	s := &screen{T: t, File: f, cmd: cmd, done: make(chan struct{})}
	s.before, err = term.GetState(int(f.Fd()))
	require.NoError(t, err)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	require.NoError(t, tty.Close())
	go s.pump()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-s.done
		_ = f.Close()
		if t.Failed() {
			t.Logf("on the terminal at last: %q", s.all()[max(len(s.all())-1500, 0):])
		}
	})
	return s
}

func (s *screen) pump() {
	defer close(s.done)
	buf := make([]byte, 4096)
	for {
		n, err := s.File.Read(buf)
		s.mu.Lock()
		s.text.Write(buf[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *screen) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// frame is the last picture that was drawn whole, without its styles.
func (s *screen) frame() string {
	text := s.all()
	end := strings.LastIndex(text, "\x1b[J")
	if end < 0 {
		return ""
	}
	begin := strings.LastIndex(text[:end], "\x1b[H")
	return regexp.MustCompile("\x1b\\[[0-9;]*[mGKH]").ReplaceAllString(text[begin:end], "")
}

func (s *screen) until(what string, is func() bool) {
	s.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("it does not come: %s", what)
		}
	}
}

func (s *screen) shows(text string) {
	s.Helper()
	s.until(text, func() bool { return strings.Contains(s.frame(), text) })
}

func (s *screen) types(keys string) {
	s.Helper()
	_, err := s.File.WriteString(keys)
	require.NoError(s, err)
}

// ended waits for the end, and holds that the terminal is as it was.
func (s *screen) ended() *os.ProcessState {
	s.Helper()
	now, err := term.GetState(int(s.Fd())) // asked for while it is there; compared when the process has ended
	require.NoError(s, err)
	_ = s.cmd.Wait()
	if now2, err := term.GetState(int(s.Fd())); err == nil {
		now = now2
	}
	<-s.done
	assert.Equal(s, s.before, now, "the terminal is in the mode that it was in")
	text := s.all()
	assert.Equal(s, strings.Count(text, enters), strings.Count(text, leaves))
	if at := strings.LastIndex(text, leaves); assert.Positive(s, at) {
		assert.NotContains(s, text[at+len(leaves):], "\x1b", "nothing is drawn behind the end")
	}
	return s.cmd.ProcessState
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	return path
}

func topOn(t *testing.T, store string, args ...string) *screen {
	t.Helper()
	return onTerminal(t, exec.Command(self(t), append([]string{"top"}, args...)...), store)
}

func TestTopLeavesTheTerminalAsItWas(t *testing.T) {
	for name, c := range map[string]struct {
		end    func(s *screen)
		status int // -1: ended by a signal
		says   string
	}{
		"q":      {func(s *screen) { s.types("q") }, 0, ""},
		"Ctrl-C": {func(s *screen) { s.types("\x03") }, 0, ""},
		"INT":    {func(s *screen) { _ = s.cmd.Process.Signal(syscall.SIGINT) }, 0, ""},
		"TERM":   {func(s *screen) { _ = s.cmd.Process.Signal(syscall.SIGTERM) }, 0, ""},
		"HUP":    {func(s *screen) { _ = s.cmd.Process.Signal(syscall.SIGHUP) }, -1, ""},
		"QUIT":   {func(s *screen) { _ = s.cmd.Process.Signal(syscall.SIGQUIT) }, 2, "SIGQUIT"},
		"ABRT":   {func(s *screen) { _ = s.cmd.Process.Signal(syscall.SIGABRT) }, 2, "SIGABRT"},
		"a stop": {func(s *screen) {
			s.types("\x1a")
			s.until("another picture", func() bool { return strings.Count(s.all(), enters) == 2 })
			s.types("q")
		}, 0, ""},
		"STOP CONT": {func(s *screen) {
			_ = s.cmd.Process.Signal(syscall.SIGTSTP)
			s.until("another picture", func() bool { return strings.Count(s.all(), enters) == 2 })
			s.types("q")
		}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := topOn(t, newStore(t))
			s.shows("default")
			c.end(s)
			state := s.ended()
			assert.Equal(t, c.status, state.ExitCode())
			assert.Contains(t, s.all(), c.says)
		})
	}
}

// A store that panics when it is asked for the third time.
type panics struct {
	taskqueue.Store
	asked atomic.Int64
}

func (p *panics) Queues(ctx context.Context) ([]string, error) {
	if p.asked.Add(1) == 3 {
		panic("the store has a fault")
	}
	return []string{"default"}, nil
}

// A store that does not answer.
type hangs struct{ taskqueue.Store }

func (hangs) Queues(ctx context.Context) ([]string, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestTopOfAStoreThatDoesNotAnswer(t *testing.T) {
	s := topOn(t, "hangs:")
	s.shows("asks the store …")
	s.types("?")
	s.shows("Any key goes back")
	s.types("qq")
	assert.Zero(t, s.ended().ExitCode())

	s = topOn(t, "hangs:")
	s.shows("the store has not answered for 5s")
	s.types("q")
	assert.Zero(t, s.ended().ExitCode())
}

func init() {
	taskqueue.Register("hangs", func(context.Context, string) (taskqueue.Store, error) { return hangs{memstore.New()}, nil })
	taskqueue.Register("panics", func(context.Context, string) (taskqueue.Store, error) { return &panics{Store: memstore.New()}, nil })
}

func TestTopLeavesTheTerminalAsItWasAfterAPanic(t *testing.T) {
	s := topOn(t, "panics:")
	state := s.ended()
	assert.Equal(t, 2, state.ExitCode())
	_, behind, _ := strings.Cut(s.all(), leaves)
	assert.Contains(t, behind, "the store has a fault", "it is told where it can be read")
}

func TestTopUnderAShellStopsAndGoesOn(t *testing.T) {
	s := onTerminal(t, exec.Command("bash", "--norc", "-i"), newStore(t), "PS1=shell> ", "SELF="+self(t), "HISTFILE=")
	s.until("a prompt", func() bool { return strings.Contains(s.all(), "shell> ") })
	s.types("\"$SELF\" top\n")
	s.shows("default")
	for n := 1; n <= 2; n++ {
		s.types("\x1a")
		s.until("stopped", func() bool { return strings.Count(s.all(), "Stopped") == n })
		assert.Equal(t, n, strings.Count(s.all(), leaves), "the screen is given back")
		s.types("fg\n")
		s.until("it goes on", func() bool { return strings.LastIndex(s.all(), enters) > strings.LastIndex(s.all(), "Stopped") })
		s.until("a picture", func() bool { return strings.LastIndex(s.all(), "QUEUE") > strings.LastIndex(s.all(), "Stopped") })
	}
	s.types("q")
	s.until("a prompt", func() bool { return strings.Count(s.all(), leaves) == 3 && strings.HasSuffix(s.all(), "shell> ") })
	s.types("echo status:$?; exit\n")
	s.until("the end", func() bool { return strings.Contains(s.all(), "status:0") })
}

func TestTopIsDrawnAnewWhenItsWindowChanges(t *testing.T) {
	s := topOn(t, newStore(t))
	s.shows("SETTINGS")
	for _, size := range []pty.Winsize{{Cols: 40, Rows: 12}, {Cols: 20, Rows: 4}, {Cols: 130, Rows: 50}} {
		require.NoError(t, pty.Setsize(s.File, &size))
		s.until(fmt.Sprintf("%v", size), func() bool {
			lines := strings.Split(s.frame(), "\r\n")
			for _, l := range lines {
				if displaywidth.String(l) > int(size.Cols) {
					return false
				}
			}
			return len(lines) == int(size.Rows)
		})
	}
	s.types("q")
	s.ended()
}

func TestTopPausesAQueueWhenItIsSure(t *testing.T) {
	store := newStore(t)
	s := topOn(t, store)
	s.shows("default")
	s.types("p")
	s.shows("pause queue default? y or n")
	s.types("n")
	s.shows("nothing was changed")
	_, out, _ := taskq(t, store, "stats")
	assert.NotContains(t, out, "paused")
	s.types("py")
	s.shows("queue default is paused")
	_, out, _ = taskq(t, store, "stats")
	assert.Contains(t, out, "paused")
	s.types("py")
	s.shows("queue default goes on")
	_, out, _ = taskq(t, store, "stats")
	assert.NotContains(t, out, "paused")
	s.types("?")
	s.shows("Any key goes back")
	s.types("qq")
	assert.Zero(t, s.ended().ExitCode())
}

func TestTopWithoutATerminalPrintsOnePicture(t *testing.T) {
	store := newStore(t)
	status, out, errs := taskq(t, store, "top")
	assert.Zero(t, status, errs)
	assert.NotContains(t, out, "\x1b")
	for _, want := range []string{"QUEUE", "default", "in 0/s"} {
		assert.Contains(t, out, want)
	}
	status, out, errs = taskq(t, store, "top", "-json")
	assert.Zero(t, status, errs)
	assert.True(t, json.Valid([]byte(out)))

	for _, kind := range []string{"dumb", ""} {
		s := onTerminal(t, exec.Command(self(t), "top"), store, "TERM="+kind)
		require.NoError(t, s.cmd.Wait())
		<-s.done
		assert.NotContains(t, s.all(), "\x1b")
		assert.Contains(t, s.all(), "default")
	}
	status, _, errs = taskq(t, "sqlite:"+filepath.Join(t.TempDir(), "none"), "top")
	assert.Equal(t, 1, status)
	assert.Contains(t, errs, "there is no file")
}

func TestTopWithoutColours(t *testing.T) {
	store := newStore(t)
	_, _, _ = taskq(t, store, "pause", "default", "mail") // of the one that is not selected this is in colour
	for _, none := range []string{"", "1"} {
		s := onTerminal(t, exec.Command(self(t), "top"), store, "NO_COLOR="+none)
		s.shows("paused")
		s.types("q")
		s.ended()
		assert.Equal(t, none == "", regexp.MustCompile("\x1b\\[3[0-9]m").MatchString(s.all()))
	}
}

func TestTopHidesNoPassword(t *testing.T) {
	store, _ := server(t, "s3cretS3cret")
	status, _, errs := taskq(t, store, "enqueue", "x")
	require.Zero(t, status, errs)
	s := topOn(t, store)
	s.shows("unix:")
	s.types("q")
	s.ended()
	assert.False(t, strings.Contains(s.all(), "3cret"))
}
