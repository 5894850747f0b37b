//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

// process starts the program with a command line, on the store of a session.
func (s *session) process(args ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	for name, value := range s.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(s.t, cmd.Start())
	s.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, &out
}

// ends waits for a process, and returns its exit status.
func ends(cmd *exec.Cmd) int {
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode()
}

// content waits for a file that is not empty.
func content(t *testing.T, path string) string {
	t.Helper()
	var text []byte
	require.Eventually(t, func() bool {
		text, _ = os.ReadFile(path)
		return len(bytes.TrimSpace(text)) > 0
	}, time.Minute, 5*time.Millisecond, path)
	return strings.TrimSpace(string(text))
}

func TestExecEndsAsItsCommandDoesAndGivesTheLockBack(t *testing.T) {
	s := newSession(t)
	for script, want := range map[string]int{
		"exit 0": 0, "exit 7": 7, "kill -KILL $$": 137, "kill -TERM $$": 143,
		`test -n "$LOCK_TOKEN" && test "$LOCK_KEY" = k && test -n "$LOCK_VERSION"`: 0,
	} {
		cmd, out := s.process("exec", "-k", "k", "--", "sh", "-c", script)
		require.Equal(t, want, ends(cmd), "%s: %s", script, out)
		_, status, err := s.run("acquire -k k --no-wait")
		require.NoError(t, err, script)
		require.Zero(t, status)
		_, _, err = s.run("release -k k -v $" + strconv.Itoa(len(s.known)))
		require.NoError(t, err)
	}
	cmd, _ := s.process("exec", "-k", "k", "--", "no-such-program-here")
	require.NotZero(t, ends(cmd))
}

func TestExecWaitsForTheLockOrSaysThatItIsTaken(t *testing.T) {
	s := newSession(t)
	_, _, err := s.run("acquire -k taken -l 3000")
	require.NoError(t, err)
	cmd, out := s.process("exec", "-k", "taken", "--no-wait", "--", "true")
	require.Equal(t, 2, ends(cmd), out)
	_, _, err = s.run("acquire -k k -l 1")
	require.NoError(t, err)
	cmd, out = s.process("exec", "-k", "k", "--wait", "1m", "--", "echo", "at last")
	require.Zero(t, ends(cmd), out)
	require.Contains(t, out.String(), "at last")
}

func TestACommandUnderExecDiesWithIt(t *testing.T) {
	t.Parallel() // it waits for the end of leases
	for name, script := range map[string]string{
		"the command":         "echo $$ > PID; exec sleep 1000",
		"what it has started": "sleep 1000 & echo $! > PID; wait",
		"what that has":       "(trap '' HUP; sh -c 'echo $$ > PID; exec sleep 1000') & wait",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSession(t)
			pidFile := filepath.Join(t.TempDir(), "pid")
			cmd, _ := s.process("exec", "-k", "k", "-l", "10", "--", "sh", "-c", strings.ReplaceAll(script, "PID", pidFile))
			pid, err := strconv.Atoi(content(t, pidFile))
			require.NoError(t, err)
			guarded(t, cmd.Process.Pid)
			require.NoError(t, cmd.Process.Kill())
			_ = cmd.Wait()
			require.Eventually(t, func() bool {
				stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
				return err != nil || strings.Contains(string(stat), ") Z ")
			}, time.Minute, 5*time.Millisecond)
			_, _, err = s.run("acquire -k k --wait 1m")
			require.NoError(t, err, "the lease runs out")
		})
	}
}

// guarded waits until exec has started the process that ends its command. The command is quicker at times.
func guarded(t *testing.T, exec int) {
	t.Helper()
	require.Eventually(t, func() bool {
		stats, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, path := range stats {
			stat, err := os.ReadFile(path)
			line, err2 := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			child := strings.Contains(string(stat), fmt.Sprintf(" %d ", exec)) // its parent is among the numbers
			if err == nil && err2 == nil && child && strings.Contains(string(line), "read -r word") {
				return true
			}
		}
		return len(stats) == 0 // nobody can tell
	}, time.Minute, 5*time.Millisecond)
}

// Drivers write lines of their own when nobody answers. The error is all that a script sees.
func TestWhereNobodyAnswersTheErrorIsAllThatIsWritten(t *testing.T) {
	for _, url := range []string{
		"redis://127.0.0.1:1/0", "mysql://u@127.0.0.1:1/d", "postgres://u@127.0.0.1:1/d?connect_timeout=1",
		"etcd://127.0.0.1:1?dial-timeout=1s",
	} {
		t.Run(strings.SplitN(url, ":", 2)[0], func(t *testing.T) {
			t.Parallel()
			cmd, out := newSession(t).process("--store", url, "list")
			require.Equal(t, 6, ends(cmd), out)
			require.True(t, strings.HasPrefix(out.String(), "db-locks"), out)
			text := strings.ReplaceAll(out.String(), "\n\t", " ") // of an error that has several lines
			require.Equal(t, 1, strings.Count(text, "\n"), out)
		})
	}
}

func TestASignalToExecIsOneForItsCommand(t *testing.T) {
	s := newSession(t)
	ready := filepath.Join(t.TempDir(), "ready")
	cmd, out := s.process("exec", "-k", "k", "-l", "600", "--", "sh", "-c", "trap 'echo cleaned up; exit 3' TERM; echo 1 > "+ready+"; while :; do sleep 0.05; done")
	content(t, ready)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	status := ends(cmd)
	require.Contains(t, out.String(), "cleaned up")
	require.NotZero(t, status)
	_, _, err := s.run("acquire -k k --no-wait")
	require.NoError(t, err, "it was given back")
}

// When the server is silent the command gets TERM while there is time for its grace, and
// KILL before the lock can be anybody else's. KILL comes more than a second before the end of such a lease: for
// so long the machine may keep the program from running.
func TestACommandEndsBeforeItsLockIsLost(t *testing.T) {
	t.Parallel()
	const lease = 12
	for _, c := range []struct {
		name, script, provider string
		start                  func(testing.TB, ...string) *servers.Server
	}{
		{"on TERM", "trap 'exit 0' TERM; ", "redis", servers.Redis},
		{"by KILL", "trap '' TERM; ", "redis", servers.Redis},
		{"by KILL on etcd", "trap '' TERM; ", "etcd", servers.Etcd},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := c.start(t)
			s := newSession(t)
			s.env[strings.ToUpper(c.provider)+"_URL"] = server.URL
			dir := t.TempDir()
			// It writes down how long the machine has run, again and again.
			script := c.script + "while :; do cut -d' ' -f1 /proc/uptime > " + dir + "/t; mv " + dir + "/t " + dir + "/alive; sleep 0.02; done"
			cmd, out := s.process(c.provider, "exec", "-k", "k", "-l", strconv.Itoa(lease), "--", "sh", "-c", script)
			content(t, filepath.Join(dir, "alive"))
			server.Pause()
			paused := uptime(t, "/proc/uptime")
			status := ends(cmd)
			server.Resume()
			require.Equal(t, 5, status, out)
			last := uptime(t, filepath.Join(dir, "alive"))
			require.Less(t, last, paused+lease, "it has lived for longer than its lease after the last renewal")
			_, _, err := s.run(c.provider + " acquire -k k --wait 1m")
			require.NoError(t, err)
		})
	}
}

// uptime reads for how many seconds the machine has run.
func uptime(t *testing.T, path string) float64 {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	seconds, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	require.NoError(t, err)
	return seconds
}
