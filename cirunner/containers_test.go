//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A job with all that a container has to do with: service, variables, secrets, artifacts and
// cache, after_script, and what it leaves behind.
func TestAJobInAContainer(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *engineUnderTest) {
		p := newProject(t, `
stages: [build, test]
variables: {TOKEN: s3cr3t-value, REGISTRY: `+e.image+`, MANY: "two\nlines"}
build:
  stage: build
  image: $REGISTRY
  services:
    - {name: $REGISTRY, alias: "db, sql", command: [sh, -c, 'echo "db at $LEVEL"; sleep 1000'], variables: {LEVEL: debug}}
  script:
    - echo "token $TOKEN in $PWD"
    - test "$PWD" = "$CI_PROJECT_DIR"; test -z "$FROM_OUTSIDE"
    - echo "$MANY"
    - mkdir out; echo made > out/x; echo kept > c
    - sleep 1000 & echo $! > pid
  after_script:
    - echo "after $CI_JOB_STATUS"; cat out/x
    - while left="$(cat /proc/$(cat pid)/cmdline 2> /dev/null)"; test -n "$left"; do sleep 0.1; done # until it has died of KILL
    - echo nothing is left behind
  cache: {key: k, paths: [c]}
  artifacts: {paths: [out], reports: {dotenv: out/x}}
use:
  stage: test
  image: $REGISTRY
  cache: {key: k, paths: [c]}
  variables: {DOCKER_PASSWORD: s3cr3t docker, script: kept}
  script: ['cat out/x c; test "$DOCKER_PASSWORD, $script" = "s3cr3t docker, kept"; test -z "$(env | grep CIRUNNER_VALUE)"; exit 3']
`)
		if e.home == "" { // what the script runs has its environment
			p.env = append(p.env, "FROM_OUTSIDE=x")
		}
		run := e.start(p, "-mask", "TOKEN", "-cache", "caches")
		assert.Equal(t, 1, run.Wait(), run.Stderr())
		out := run.Stdout()
		assert.Contains(t, out, "[build] token [MASKED] in "+p.dir+"/.cirunner/1/jobs/001-build\n")
		assert.Contains(t, out, "[build] two\n[build] lines\n")
		assert.Contains(t, out, "[build] after success\n[build] made\n")
		assert.Contains(t, out, "[build] nothing is left behind\n")
		assert.Contains(t, out, "[build/db] db at debug\n")
		assert.Contains(t, out, "[use] made\n[use] kept\n")
		assert.Contains(t, row(t, out, "build"), "success 1 ")
		assert.Contains(t, row(t, out, "use"), "script_failure: exit status 3")
		assert.FileExists(t, filepath.Join(p.dir, ".cirunner/1/artifacts/001-build/out/x"))
		if e.home != "" {
			e.knowsTheJob(t)
			assert.NotContains(t, p.readFrom(e.home, "calls"), "s3cr3t", "others would see it among the arguments")
		}
		e.nothingIsLeft(p)
	})
}

// knowsTheJob looks at the arguments with which the container of the job was started.
func (e *engineUnderTest) knowsTheJob(t *testing.T) {
	t.Helper()
	job := strings.ReplaceAll(e.calls(t, "run ")[1], `\`, "")
	for _, want := range []string{"--add-host db:127.0.0.1", "--add-host sql:127.0.0.1", "--label cirunner.run=", "--network cirunner-", "--mount type=bind"} {
		assert.Contains(t, job, want)
	}
}

func (p *project) readFrom(dir, name string) string {
	p.t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(p.t, err)
	return string(data)
}

// The two levels of a stop, while a script runs that heeds TERM and one that does not.
func TestStopsInAContainer(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *engineUnderTest) {
		for name, tc := range map[string]struct {
			script  string
			signals []syscall.Signal // different ones: two of a kind may be taken for one
			says    []string
			not     string
		}{
			"a cancel": {"trap 'echo stopped; exit 5' TERM; echo up; while :; do sleep 0.1; done", []syscall.Signal{syscall.SIGINT}, []string{"[a] stopped\n", "[a] after canceled\n"}, "aborted"},
			"an abort": {"trap '' TERM; echo up; while :; do sleep 0.1; done", []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}, []string{"aborted: stopped by signal: "}, "[a] after"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := newProject(t, "a:\n  image: "+e.image+"\n  script: [\""+tc.script+"\"]\n  cirunner: {grace: 1h}\n  after_script: [echo after $CI_JOB_STATUS]\n")
				run := e.start(p)
				run.WaitFor("[a] up")
				for _, sig := range tc.signals {
					run.Signal(sig)
				}
				assert.Contains(t, []int{130, 143}, run.Wait(), run.Stderr())
				for _, s := range tc.says {
					assert.Contains(t, run.Stdout(), s)
				}
				assert.NotContains(t, run.Stdout(), tc.not)
				assert.Contains(t, row(t, run.Stdout(), "a"), "canceled 1 ")
				e.nothingIsLeft(p)
			})
		}
	})
}

// A script that ignores TERM gets KILL after the grace, and the container stays for
// after_script.
func TestATimeoutInAContainer(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *engineUnderTest) {
		p := newProject(t, "a:\n  image: "+e.image+"\n  script: [\"trap '' TERM; echo up; while :; do sleep 0.1; done\"]\n"+
			"  timeout: 3s\n  cirunner: {grace: 100ms}\n  after_script: [echo after $CI_JOB_STATUS]\n")
		run := e.start(p)
		assert.Equal(t, 1, run.Wait(), run.Stderr())
		assert.Contains(t, run.Stdout(), "[a] after failed\n")
		// On a machine that is slow to start it, the script has not come to its trap.
		assert.Regexp(t, "job_execution_timeout: the script took longer than 3s, (and ignored TERM: killed|exit status 143)$", row(t, run.Stdout(), "a"))
		e.nothingIsLeft(p)
	})
}

// Somebody kills the container, or the client of the engine: it is not the script's fault.
func TestWhatAContainerNeedsIsKilled(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *engineUnderTest) {
		for name, tc := range map[string]struct {
			kill func(t *testing.T, p *project)
			says string
		}{
			"the container": {func(t *testing.T, p *project) {
				e.ask(t, "kill", "--signal", "KILL", e.containers(p)[0])
			}, "runner_system_failure: the container has ended: exit status 137"},
			"the client": {func(t *testing.T, p *project) { killClients(t, p, " exec --workdir ") },
				"runner_system_failure: the client of the engine was ended by SIGKILL"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := newProject(t, "a: {image: "+e.image+", script: ['echo up; sleep 1000']}\n")
				run := e.start(p)
				run.WaitFor("[a] up")
				tc.kill(t, p)
				assert.Equal(t, 1, run.Wait(), run.Stderr())
				assert.Contains(t, row(t, run.Stdout(), "a"), tc.says)
				e.nothingIsLeft(p)
			})
		}
	})
}

// The runner is killed: the next run removes what it has left in the engine.
func TestTheRunnerOfAContainerIsKilled(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *engineUnderTest) {
		p := newProject(t, "a: {image: "+e.image+", services: [{name: "+e.image+", alias: db, command: [sleep, '1000']}], script: ['echo up; sleep 1000']}\n")
		run := e.start(p)
		run.WaitFor("[a] up")
		run.Signal(syscall.SIGKILL)
		run.Wait()
		require.Len(t, e.containers(p), 2)
		p.write("ci.yml", "a: {script: [echo again]}\n")
		next := p.start("-kill-stale")
		assert.Equal(t, 0, next.Wait(), next.Stderr())
		assert.Contains(t, next.Stdout(), "== run 1: its containers are removed, 2 of them\n")
		until(t, "nothing of the run that was killed runs", func() bool { return len(processes(t, p.dir)) == 0 })
		last := p.start()
		assert.Equal(t, 0, last.Wait(), last.Stderr())
		e.nothingIsLeft(p)
	})
}
