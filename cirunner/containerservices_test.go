//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAServiceOfAContainerEnds(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *engineUnderTest) {
		p := newProject(t, "a: {image: "+e.image+", services: [{name: "+e.image+", alias: db, command: [sh, -c, 'echo down; exit 3']}], script: [sleep 1000], after_script: [echo after]}\n")
		run := e.start(p)
		assert.Equal(t, 1, run.Wait(), run.Stderr())
		assert.Contains(t, run.Stdout(), "[a/db] down\n")
		assert.Regexp(t, `runner_system_failure: service db: has ended: exit status 3$`, row(t, run.Stdout(), "a"))
		e.nothingIsLeft(p)
	})
}

// killClients kills the clients of the engine that have a text among their arguments.
func killClients(t *testing.T, p *project, text string) {
	t.Helper()
	killed := 0
	for _, process := range processes(t, p.dir) {
		path, cmdline, _ := strings.Cut(process, " ")
		if strings.Contains(cmdline, text) {
			pid, err := strconv.Atoi(filepath.Base(path))
			require.NoError(t, err)
			if err := syscall.Kill(pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) { // a command of a script, that has ended since
				require.NoError(t, err)
				killed++
			}
		}
	}
	require.NotZero(t, killed, text)
}

// Somebody kills the container of a service, or the client that follows it: the job fails, and says which it was.
func TestAServiceOfAContainerIsKilled(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *engineUnderTest) {
		for name, tc := range map[string]struct {
			kill func(t *testing.T, p *project)
			says string
		}{
			"the container": {func(t *testing.T, p *project) {
				for _, id := range e.containers(p) {
					if e.isService(t, id) {
						e.ask(t, "kill", "--signal", "KILL", id)
					}
				}
			}, "runner_system_failure: service db: has ended: exit status 137"},
			"the client": {func(t *testing.T, p *project) { killClients(t, p, " logs --follow ") },
				"runner_system_failure: service db: the client that follows it has ended: logs: ended by SIGKILL"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := newProject(t, "a: {image: "+e.image+", services: [{name: "+e.image+", alias: db, command: [sh, -c, 'echo db is up; sleep 1000']}], script: ['echo up; sleep 1000'], after_script: [echo after $CI_JOB_STATUS]}\n")
				run := e.start(p)
				waitForAll(run, "[a/db] db is up", "[a] up")
				tc.kill(t, p)
				assert.Equal(t, 1, run.Wait(), run.Stderr())
				assert.Contains(t, row(t, run.Stdout(), "a"), tc.says)
				assert.Contains(t, run.Stdout(), "[a] after failed\n")
				e.nothingIsLeft(p)
			})
		}
	})
}

// isService reports whether a container is that of a service.
func (e *engineUnderTest) isService(t *testing.T, id string) bool {
	t.Helper()
	if e.home != "" {
		return strings.Contains(id, "-service-")
	}
	return strings.Contains(e.ask(t, "inspect", "--format", "{{.Name}}", id), "-service-")
}

// A service that does not answer fails the job after 30 s, which the test waits for; its port is the first of the image, or
// that of a variable.
func TestAServiceOfAContainerDoesNotAnswer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	for name, tc := range map[string]struct{ ports, variables, says string }{
		"the port of the image":  {`,"2/tcp":{},"1/tcp":{}`, "", "runner_system_failure: service db: does not answer at port 1 within 30s"},
		"the port of a variable": {`,"1/tcp":{}`, ", variables: {HEALTHCHECK_TCP_PORT: '3'}", "runner_system_failure: service db: does not answer at port 3 within 30s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := fakeEngine(t)
			require.NoError(t, os.WriteFile(filepath.Join(e.home, "images", "db"), []byte(tc.ports), 0o644))
			p := newProject(t, "a: {image: tool, services: [{name: db, command: [sh, -c, 'sleep 1000']"+tc.variables+"}], script: [echo never]}\n")
			run := e.start(p)
			assert.Equal(t, 1, run.Wait(), run.Stderr())
			assert.Contains(t, row(t, run.Stdout(), "a"), tc.says)
			assert.NotContains(t, run.Stdout(), "never\n")
			e.nothingIsLeft(p)
		})
	}
}

// Two services of one image have a log each, with all that either has said.
func TestServicesOfOneImage(t *testing.T) {
	t.Parallel()
	e := fakeEngine(t)
	p := newProject(t, "a: {image: tool, services: [{name: tool, command: [sh, -c, 'echo first; sleep 1000']}, {name: tool, command: [sh, -c, 'echo second; sleep 1000']}], script: ['until test -e go; do sleep 0.1; done']}\n")
	run := e.start(p)
	waitForAll(run, "[a/tool] first", "[a/tool] second")
	p.write(".cirunner/1/jobs/001-a/go", "")
	assert.Equal(t, 0, run.Wait(), run.Stderr())
	assert.Equal(t, "first\n", p.read(".cirunner/1/logs/001-a.1-tool.log"))
	assert.Equal(t, "second\n", p.read(".cirunner/1/logs/001-a.2-tool.log"))
	e.nothingIsLeft(p)
}
