//go:build unix

package main

import (
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// daemon starts a process in a session of its own, which ignores TERM if that is asked for,
// and goes on when it is up.
const daemon = `setsid bash -c "$TRAP echo > up; while :; do sleep 0.1; done" > /dev/null 2>&1 < /dev/null &
      until test -e up; do sleep 0.01; done`

func needsSetsid(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("needs setsid")
	}
}

// A process that has left its group is ended with its job, however that ends.
func TestNoSessionOutlivesItsJob(t *testing.T) {
	t.Parallel()
	needsSetsid(t)
	for name, tc := range map[string]struct {
		trap, then string
		signals    []syscall.Signal
		status     int
	}{
		"the job ends":       {"", "echo done", nil, 0},
		"the job fails":      {"", "exit 3", nil, 1},
		"TERM is ignored":    {"trap '' TERM;", "echo done", nil, 0},
		"a cancel":           {"", "echo ready; sleep 1000", []syscall.Signal{syscall.SIGINT}, 130},
		"an abort":           {"trap '' TERM;", "trap '' TERM; echo ready; sleep 1000; sleep 1000", []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}, 130},
		"a runner in it too": {"", "mkdir in; cd in; echo 'j: {script: [echo ready; sleep 1000]}' > ci.yml; setsid cirunner ci.yml", []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}, 130},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, `
works:
  variables: {TRAP: "`+tc.trap+`"}
  cirunner: {grace: 300ms}
  script:
    - |
      `+daemon+`
    - `+"\""+tc.then+"\""+`
`)
			run := p.start()
			if len(tc.signals) > 0 {
				run.WaitFor("] ready")
			}
			for _, sig := range tc.signals {
				run.Signal(sig)
			}
			status := run.Wait()
			if len(tc.signals) == 2 && status == 128+int(syscall.SIGTERM) {
				status = tc.status // either may be heard first
			}
			assert.Equal(t, tc.status, status, run.Stdout()+run.Stderr())
			if tc.signals == nil {
				assert.Regexp(t, `\[works\] cirunner: it left \d+ process(es)? behind, in sessions of their own, which were ended\n`, run.Stdout())
			}
			p.nothingIsLeft()
		})
	}
}

// The runner was killed: the next run knows of the process, though its group is on no
// record.
func TestASessionOfAKilledRunIsKilled(t *testing.T) {
	t.Parallel()
	needsSetsid(t)
	p := newProject(t, `
works:
  script:
    - |
      `+daemon+`
    - echo ready; exec sleep 1000
`)
	killed := p.start()
	killed.WaitFor("[works] ready")
	killed.Signal(syscall.SIGKILL)
	killed.Wait()
	require.GreaterOrEqual(t, len(processes(t, p.dir)), 2)
	p.write("ci.yml", "works: {script: [echo again]}\n")
	next := p.start("-kill-stale")
	assert.Equal(t, 0, next.Wait(), next.Stderr())
	assert.Regexp(t, `== run 1: process group \d+ of "a job" still ran: killed\n`, next.Stdout())
	until(t, "the processes that were left are gone", func() bool { return len(processes(t, p.dir)) == 0 })
	last := p.start()
	assert.Equal(t, 0, last.Wait(), last.Stderr())
	p.nothingIsLeft()
}
