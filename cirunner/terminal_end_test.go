//go:build unix

package main

import (
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// titles returns the lines that are titles of a tree.
func titles(lines []string) (found []string) {
	is := regexp.MustCompile(`^\d+ of \d+ jobs`)
	for _, l := range lines {
		if is.MatchString(l) {
			found = append(found, l)
		}
	}
	return found
}

// failing is a pipeline in which a job has failed and another goes on.
const failing = `
stages: [a-stage-with-a-long-name, two]
a job whose name is so long that it does not fit:
  stage: a-stage-with-a-long-name
  script: ["seq 1 30; echo the reason; exit 7"]
  after_script: ["seq 100 130"]
works:
  stage: a-stage-with-a-long-name
  script: ["echo up; until test -e $GO; do sleep 0.01; done"]
later:
  stage: two
  script: [echo never]
`

// A terminal of 80 columns, from the first frame to the last line.
func TestAnEightyColumnTerminal(t *testing.T) {
	t.Parallel()
	for _, reflow := range []bool{false, true} {
		t.Run(map[bool]string{false: "cuts", true: "wraps anew"}[reflow], func(t *testing.T) {
			t.Parallel()
			p := newProject(t, failing)
			mark := p.signalFile()
			cmd := exec.Command("cirunner", "-j", "2", "ci.yml")
			p.in(cmd)
			cmd.Env = append(cmd.Env, "TERM=xterm-256color")
			s := onTerminal(t, cmd, 80, 40)
			s.shown.Reflow = reflow
			one := func(lines []string) bool {
				all := titles(lines)
				return len(all) == 1 && strings.HasPrefix(all[0], "1 of 3 jobs, 1 failed  ") && lines[len(lines)-1] == "└ · later"
			}
			s.waitUntil(t, "the number of failed jobs in the title", one)
			for _, columns := range []uint16{40, 33, 78, 50, 80} {
				s.resize(t, columns, 40)
				s.waitUntil(t, "one tree", one)
			}
			require.NoError(t, os.WriteFile(mark, nil, 0o644))
			var exit *exec.ExitError
			require.ErrorAs(t, cmd.Wait(), &exit)
			assert.Equal(t, 1, exit.ExitCode())
			s.waitFor(t, "cirunner: jobs failed")
			lines := s.shown.Lines()
			assert.Empty(t, titles(lines), "the tree is gone")
			from := slices.Index(lines, "  … 22 lines before")
			require.GreaterOrEqual(t, from, 2, "%s", strings.Join(lines, "\n"))
			assert.Equal(t, []string{
				"✗ a job whose name is so long that it does not fit: script_failure: exit status",
				"7",
			}, lines[from-2:from])
			assert.Equal(t, []string{"  22", "  23", "  24", "  25", "  26", "  27", "  28", "  29", "  30", "  the reason", ""}, lines[from+1:from+12])
			table := lines[from+12:]
			assert.Equal(t, "JOB", table[0][:3])
			assert.Regexp(t, `^a job whose.*… +a-stage.*… +failed +1 +\d.* exit status 7$`, table[3], "failures are last")
			p.nothingIsLeft()
		})
	}
}

// Ctrl-Z at a shell: the tree is gone while cirunner is stopped, and there once when it
// goes on. Its jobs have not been stopped.
func TestCtrlZAtAShell(t *testing.T) {
	t.Parallel()
	p := newProject(t, failing)
	p.env = append(p.env, "PS1=prompt> ", "TERM=xterm", "NO_COLOR=1", "HISTFILE=")
	mark := p.signalFile()
	cmd := exec.Command("bash", "--norc", "--noprofile", "--noediting", "-i")
	p.in(cmd)
	s := onTerminal(t, cmd, 80, 40)
	last := func(prefix string) func([]string) bool {
		return func(lines []string) bool { return strings.HasPrefix(lines[len(lines)-1], prefix) }
	}
	// A prompt below others, at which nothing is typed yet.
	idle := func(lines []string) bool {
		return len(lines) > 1 && strings.TrimSpace(lines[len(lines)-1]) == "prompt>"
	}
	s.waitUntil(t, "a prompt", last("prompt>"))
	// Ctrl-Z throws away what the terminal has not read yet. The one of the test may be
	// slow to read.
	s.press(t, "stty noflsh; cirunner -j 2 ci.yml\n")
	tree := func(lines []string) bool {
		return len(titles(lines)) == 1 && lines[len(lines)-1] == "└ · later" && strings.Contains(titles(lines)[0], "1 failed")
	}
	s.waitUntil(t, "the tree", tree)
	for range 2 {
		s.press(t, "\x1a")
		s.waitUntil(t, "a prompt and no tree", func(lines []string) bool {
			return len(titles(lines)) == 0 && idle(lines)
		})
		s.press(t, "echo from the shell\n")
		s.waitUntil(t, "what the shell says", func(lines []string) bool {
			return idle(lines) && lines[len(lines)-2] == "from the shell"
		})
		s.press(t, "fg\n")
		s.waitUntil(t, "the tree below", func(lines []string) bool {
			return tree(lines) && slices.Contains(lines, "from the shell")
		})
	}
	require.NoError(t, os.WriteFile(mark, nil, 0o644))
	s.waitUntil(t, "the end", func(lines []string) bool {
		return last("prompt>")(lines) && lines[len(lines)-2] == "cirunner: jobs failed"
	})
	s.press(t, "exit\n")
	_ = cmd.Wait()
	p.nothingIsLeft()
}

// A process in the background draws nothing where the shell writes.
func TestInTheBackground(t *testing.T) {
	t.Parallel()
	p := newProject(t, failing)
	p.env = append(p.env, "PS1=prompt> ", "TERM=xterm", "NO_COLOR=1", "HISTFILE=")
	mark := p.signalFile()
	cmd := exec.Command("bash", "--norc", "--noprofile", "--noediting", "-i")
	p.in(cmd)
	s := onTerminal(t, cmd, 80, 40)
	s.press(t, "cirunner -j 2 ci.yml &\n")
	until(t, "the job is up", func() bool {
		data, _ := os.ReadFile(p.dir + "/.cirunner/1/logs/002-works.log")
		return strings.Contains(string(data), "\nup\n")
	})
	s.press(t, "echo hello\n")
	s.waitFor(t, "\nhello\r\n")
	assert.Empty(t, titles(s.shown.Lines()))
	s.press(t, "fg\n")
	s.waitUntil(t, "the tree", func(lines []string) bool { return len(titles(lines)) == 1 })
	require.NoError(t, os.WriteFile(mark, nil, 0o644))
	s.waitFor(t, "cirunner: jobs failed")
	s.press(t, "exit\n")
	_ = cmd.Wait()
}

// A script has the terminal, and timeout has put cirunner into a group of its own.
func TestUnderTimeoutInAScript(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("timeout"); err != nil || runtime.GOOS != "linux" {
		t.Skip("needs timeout, and /proc")
	}
	p := newProject(t, failing)
	p.write("script.sh", "timeout 1000 cirunner -j 2 ci.yml\n")
	p.env = append(p.env, "PS1=prompt> ", "TERM=xterm", "NO_COLOR=1", "HISTFILE=")
	mark := p.signalFile()
	cmd := exec.Command("bash", "--norc", "--noprofile", "--noediting", "-i")
	p.in(cmd)
	s := onTerminal(t, cmd, 80, 40)
	s.press(t, "bash script.sh\n")
	s.waitUntil(t, "the tree", func(lines []string) bool { return len(titles(lines)) == 1 })
	require.NoError(t, os.WriteFile(mark, nil, 0o644))
	s.waitFor(t, "cirunner: jobs failed")
	s.press(t, "exit\n")
	_ = cmd.Wait()
}
