package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/clitest"
)

// stray starts a process in a session of its own, without an environment, and goes on when it is up.
const stray = `setsid env -i PATH="$PATH" bash -c "%s echo > up; while :; do sleep 0.05; done" > /dev/null 2>&1 < /dev/null &
      until test -e up; do sleep 0.01; done`

// A process that has made a session of its own and has cleared its environment is ended with its job, however
// that ends: it works where the job did. The same process of another job goes on.
func TestNoStrayOutlivesItsJob(t *testing.T) {
	t.Parallel()
	needsSetsid(t)
	for name, tc := range map[string]struct {
		trap, then string
		signals    []syscall.Signal
		status     []int
	}{
		"the job ends":    {"", "echo done", nil, []int{0}},
		"TERM is ignored": {"trap '' TERM;", "echo done", nil, []int{0}},
		"a cancel":        {"", "echo ready; sleep 1000", []syscall.Signal{syscall.SIGINT}, []int{130}},
		"an abort":        {"trap '' TERM;", "trap '' TERM; echo ready; while :; do sleep 0.1; done", []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}, []int{130, 143}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, "works:\n  cirunner: {grace: 300ms}\n  script:\n    - |\n      "+fmt.Sprintf(stray, tc.trap)+"\n    - \""+tc.then+"\"\n")
			run := p.start()
			if tc.signals != nil {
				run.WaitFor("[works] ready")
			}
			for _, sig := range tc.signals {
				run.Signal(sig)
			}
			assert.Contains(t, tc.status, run.Wait(), run.Stdout()+run.Stderr())
			if tc.signals == nil {
				assert.Contains(t, run.Stdout(), "behind, in sessions of their own, which were ended\n")
			}
			p.nothingIsLeft()
		})
	}
	t.Run("another job goes on", func(t *testing.T) {
		t.Parallel()
		p := newProject(t, "")
		ended := p.signalFile()
		p.write("ci.yml", "long:\n  script:\n    - |\n      "+fmt.Sprintf(stray, "echo \\$\\$ > pid;")+"\n    - until test -e $GO; do sleep 0.01; done\n"+
			"    - kill -0 $(cat pid) && ! grep -q zombie /proc/$(cat pid)/status && echo it lives\n"+
			"short:\n  script: ['echo short']\n  after_script: ['echo after']\n"+
			"tells:\n  needs: [short]\n  script: ['touch "+ended+"']\n")
		run := p.start("-j", "3")
		assert.Equal(t, 0, run.Wait(), run.Stdout()+run.Stderr())
		assert.True(t, strings.Contains(run.Stdout(), "[long] it lives\n"), run.Stdout())
		p.nothingIsLeft()
	})
}

// A job that leaves dead processes to the runner does not fill the table of processes for as long as it lasts: the script
// ends when they are gone.
func TestTheDeadOfAJobAreBuriedWhileItLasts(t *testing.T) {
	t.Parallel()
	p := newProject(t, `works:
  script:
    - for i in $(seq 20); do (true & echo $! >> pids); done
    - for p in $(cat pids); do while test -e /proc/$p; do sleep 0.05; done; done
`)
	run := p.start()
	assert.Equal(t, 0, run.Wait(), run.Stdout()+run.Stderr())
	p.nothingIsLeft()
}

// The runner is killed: the next run tells of such a process, and ends it if that is asked for.
func TestAStrayOfAKilledRunIsKilled(t *testing.T) {
	t.Parallel()
	needsSetsid(t)
	p := newProject(t, "works:\n  script:\n    - |\n      "+fmt.Sprintf(stray, "")+"\n    - echo ready; exec sleep 1000\n")
	killed := p.start()
	killed.WaitFor("[works] ready")
	killed.Signal(syscall.SIGKILL)
	killed.Wait()
	p.write("ci.yml", "works: {script: [echo again]}\n")
	told := p.start()
	assert.Equal(t, 0, told.Wait(), told.Stderr())
	assert.Equal(t, 2, strings.Count(told.Stdout(), "still runs: kill -- -"), "the script, and what it has left\n%s", told.Stdout())
	next := p.start("-kill-stale")
	assert.Equal(t, 0, next.Wait(), next.Stderr())
	assert.Equal(t, 2, strings.Count(next.Stdout(), "still ran: killed"), next.Stdout())
	until(t, "the processes that were left are gone", func() bool { return len(processes(t, p.dir)) == 0 })
	last := p.start()
	assert.Equal(t, 0, last.Wait(), last.Stderr())
	p.nothingIsLeft()
}

// The runner is killed, and a process of its script has cleared its environment and gone to another directory, in the group
// that the script was given: the next run tells of it by what was written down of the group, and ends it.
func TestAGroupOfAKilledRunIsKilled(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"the leader": "cd /; echo ready $$; exec env -i /bin/sleep 777",
		"a child":    "cd /; env -i /bin/sleep 777 & echo ready $$; exec env -i /bin/sleep 777",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, "works: {script: ['"+script+"']}\n")
			killed := p.start()
			group := lastInt(t, killed.WaitFor("[works] ready"))
			killed.Signal(syscall.SIGKILL)
			killed.Wait()
			killIfFailed(t, group)
			p.write("ci.yml", "works: {script: [echo again]}\n")
			told := p.start()
			assert.Equal(t, 0, told.Wait(), told.Stderr())
			assert.Contains(t, told.Stdout(), fmt.Sprintf("== run 1: process group %d of \"works\" still runs: kill -- -%d, or", group, group))
			assert.NotEmpty(t, clitest.InGroup(t, group), "it was only told of")
			next := p.start("-kill-stale")
			assert.Equal(t, 0, next.Wait(), next.Stderr())
			assert.Contains(t, next.Stdout(), fmt.Sprintf("process group %d of \"works\" still ran: killed\n", group))
			until(t, "the group is gone", func() bool { return len(clitest.InGroup(t, group)) == 0 })
			p.nothingIsLeft()
		})
	}
}
