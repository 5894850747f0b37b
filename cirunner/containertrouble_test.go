//go:build unix

package main

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Trouble with the engine is told as that, in the words of its client, and is no failure of the script.
func TestTroubleWithTheEngine(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ fails, image, script, says string }{
		"it does not say how the container is": {"*' inspect --format {{.State'*", "tool", "exit 3", "cannot look at the container: "},
		"it does not say what images it has":   {"*' image inspect '*", "{name: tool, pull_policy: never}", "true", "image: the engine does not have tool, or does not answer, and pull_policy is never: "},
		"nothing can be ended":                 {"*' kill -KILL '*", "tool", "true", "cannot end what the script has left behind: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := fakeEngine(t)
			down := e.failing(t, tc.fails)
			require.NoError(t, os.WriteFile(down, nil, 0o644))
			p := newProject(t, "a: {image: "+tc.image+", script: ['"+tc.script+"'], allow_failure: {exit_codes: [1, 3]}}\n")
			run := e.start(p)
			assert.Equal(t, 1, run.Wait(), run.Stderr())
			assert.Contains(t, row(t, run.Stdout(), "a"), "runner_system_failure: "+tc.says)
			assert.Contains(t, row(t, run.Stdout(), "a"), "exit status 1: it is down")
			e.nothingIsLeft(p)
		})
	}
}

// A script that cannot be stopped does not go on beside after_script: its container is killed.
func TestAScriptThatCannotBeStopped(t *testing.T) {
	t.Parallel()
	e := fakeEngine(t)
	down := e.failing(t, "*' kill -TERM '*|*' kill -KILL '*")
	require.NoError(t, os.WriteFile(down, nil, 0o644))
	p := newProject(t, "a: {image: tool, script: ['echo up; sleep 1000'], cirunner: {grace: 10ms}, after_script: [echo after]}\n")
	run := e.start(p)
	run.WaitFor("[a] up")
	run.Signal(syscall.SIGINT)
	assert.Equal(t, 130, run.Wait(), run.Stderr())
	assert.Contains(t, run.Stdout(), "after_script, which does not count: the container has ended: exit status 137\n")
	assert.NotContains(t, run.Stdout(), "[a] after\n")
	e.nothingIsLeft(p)
}

// The first process of a container is an init: signals spare it, and what waits below it.
func TestAContainerWithAnInit(t *testing.T) {
	t.Parallel()
	e := realEngine(t)
	p := newProject(t, `
default:
  image: {name: `+e.image+`, entrypoint: [sh, -c, 'sh -c ''"$@" & wait $!'' - "$@" & wait $!', init]}
  after_script: ['echo "after $CI_JOB_STATUS"; until test -z "$(cat /proc/$(cat pid)/cmdline 2> /dev/null)"; do sleep 0.1; done; echo nothing is left']
ends: {script: ['sleep 1000 & echo $! > pid; exit 3'], allow_failure: {exit_codes: 3}}
stops: {script: ['echo $$ > pid; trap "echo stopped; exit 5" TERM; echo up; while :; do sleep 0.1; done'], cirunner: {grace: 1h}}
`)
	run := e.start(p, "-j", "2")
	waitForAll(run, "[stops] up", "[ends] nothing is left")
	run.Signal(syscall.SIGINT)
	assert.Equal(t, 130, run.Wait(), run.Stderr())
	out := run.Stdout()
	assert.Contains(t, row(t, out, "ends"), "script_failure: exit status 3")
	assert.Contains(t, out, "[ends] after failed\n")
	assert.Contains(t, out, "[stops] stopped\n")
	assert.Contains(t, out, "[stops] after canceled\n")
	assert.Contains(t, out, "[ends] nothing is left\n")
	assert.Contains(t, out, "[stops] nothing is left\n")
	e.nothingIsLeft(p)
}
