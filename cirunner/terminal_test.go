//go:build unix

package main

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/cirunner/internal/board"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
	"github.com/ambit-go/ambit/cirunner/internal/view"
	"github.com/ambit-go/ambit/cirunner/internal/view/viewtest"
)

var update = flag.Bool("update", false, "make the picture of the terminal anew")

// A screen is the other side of a terminal: it takes down what is written.
type screen struct {
	*os.File
	shown *viewtest.Terminal
	mu    sync.Mutex
	text  bytes.Buffer
	done  chan struct{} // closed when the terminal is
}

func (s *screen) pump() {
	defer close(s.done)
	buf := make([]byte, 4096)
	for {
		n, err := s.Read(buf)
		_, _ = s.shown.Write(buf[:n]) // first: whoever sees a text finds it on the terminal
		s.mu.Lock()
		s.text.Write(buf[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *screen) waitFor(t *testing.T, text string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("on the terminal: %q", s.String()[max(len(s.String())-2000, 0):])
		}
	}()
	until(t, text, func() bool { return strings.Contains(s.String(), text) })
}

// waitUntil waits for a state of the terminal, which has lines.
func (s *screen) waitUntil(t *testing.T, what string, holds func(lines []string) bool) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("on the terminal:\n%s", strings.Join(s.shown.Lines(), "\n"))
		}
	}()
	until(t, what, func() bool {
		lines := s.shown.Lines()
		return len(lines) > 0 && holds(lines)
	})
}

// resize changes the size of the terminal.
func (s *screen) resize(t *testing.T, columns, rows uint16) {
	t.Helper()
	s.shown.Resize(int(columns), int(rows))
	require.NoError(t, pty.Setsize(s.File, &pty.Winsize{Cols: columns, Rows: rows}))
}

// press types.
func (s *screen) press(t *testing.T, keys string) {
	t.Helper()
	_, err := s.WriteString(keys)
	require.NoError(t, err)
}

// onTerminal starts a command that has a terminal of its own.
func onTerminal(t *testing.T, cmd *exec.Cmd, columns, rows uint16) *screen {
	t.Helper()
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: columns, Rows: rows})
	require.NoError(t, err)
	s := &screen{File: f, shown: viewtest.New(int(columns), int(rows)), done: make(chan struct{})}
	go s.pump()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = f.Close()
		<-s.done
	})
	return s
}

func TestTheTreeOnATerminal(t *testing.T) {
	t.Parallel()
	p := newProject(t, `
stages: [one, two]
evil:
  stage: one
  script: ["printf '\\e]0;title\\a\\e[2J\\e[31mred is the %0100d line\\n' 1; sleep 1000"]
  after_script: [echo tidy]
later:
  stage: two
  script: [echo never]
`)
	cmd := exec.Command("cirunner", "ci.yml")
	p.in(cmd)
	cmd.Env = append(cmd.Env, "TERM=xterm", "NO_COLOR=1")
	s := onTerminal(t, cmd, 100, 30)
	s.waitFor(t, "evil ")
	s.waitFor(t, "red is the 000")
	s.resize(t, 24, 30)
	s.waitFor(t, "red i…")
	s.resize(t, 100, 30)
	s.waitUntil(t, "the wide tree", func(lines []string) bool { return strings.Contains(strings.Join(lines, "\n"), "red is the 000") })
	s.press(t, "\x03")
	err := cmd.Wait()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 130, exit.ExitCode())
	s.waitFor(t, "stopped by signal: interrupt\r\n")
	text := s.String()
	for _, bad := range []string{"\x1b]0", "\x1b[2J", "\x1b[31m"} {
		assert.NotContains(t, text, bad)
	}
	assert.Contains(t, ansi.Strip(text), "└ ● evil")
	assert.NotRegexp(t, regexp.MustCompile("\x1b\\[(3|9)[0-7]m"), text, "NO_COLOR")
	assert.NotContains(t, text, "\x1b[?25l", "the cursor stays")
	assert.Contains(t, ansi.Strip(text), "evil   one    canceled  1 ")
	p.nothingIsLeft()
}

// A terminal that cannot move its cursor, or does not say what it is, gets lines.
func TestADumbTerminalGetsLines(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"TERM=dumb", "TERM=", ""} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, "one: {script: [echo hello]}\n")
			cmd := exec.Command("cirunner", "ci.yml")
			p.in(cmd)
			cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool { return strings.HasPrefix(v, "TERM=") })
			if kind != "" {
				cmd.Env = append(cmd.Env, kind)
			}
			s := onTerminal(t, cmd, 80, 24)
			require.NoError(t, cmd.Wait())
			s.waitFor(t, "[one] hello\r\n")
			assert.NotContains(t, s.String(), "\x1b")
		})
	}
}

// The picture in the README is a frame of a real run of demo.yml: the one with
// the most going on.
func TestThePicture(t *testing.T) {
	const picture = "tree.svg"
	if !*update {
		data, err := os.ReadFile(picture)
		require.NoError(t, err)
		assert.Contains(t, string(data), "jobs</text>")
		return
	}
	master, tty, err := pty.Open()
	require.NoError(t, err)
	const columns = 92
	s := &screen{File: master, shown: viewtest.New(columns, 50), done: make(chan struct{})}
	go s.pump()
	require.NoError(t, pty.Setsize(tty, &pty.Winsize{Cols: columns, Rows: 50}))
	t.Setenv("TERM", "xterm-256color")

	file, err := filepath.Abs("demo.yml")
	require.NoError(t, err)
	var best []string
	most := 0
	o := &options{}
	flags := flag.NewFlagSet("", flag.PanicOnError)
	o.define(flags)
	require.NoError(t, flags.Parse([]string{"-C", t.TempDir(), "-j", "4"}))
	o.frame = func(lines []string, jobs []board.Job) {
		score := 0
		for _, j := range jobs {
			switch j.State {
			case plan.Running:
				score += 10
			case plan.Failed, plan.Warned, plan.Succeeded:
				score += 3
			case plan.Waiting:
				score++
			}
		}
		if score > most {
			best, most = lines, score
		}
	}
	_ = run(t.Context(), o, []string{file}, tty) // jobs may fail
	_ = tty.Close()
	_ = master.Close()
	<-s.done
	require.NotEmpty(t, best)
	require.NoError(t, os.WriteFile(picture, []byte(view.SVG(best, columns)), 0o644))
}
