//go:build unix

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A repository as people have them: images, a service, cache, needs, artifacts, coverage and tests.
func wholeProject(t *testing.T, e *engineUnderTest) *project {
	return newProject(t, `
default: {image: `+e.image+`}
stages: [build, test, deploy]
build:
  stage: build
  script: [mkdir -p out deps, echo made > out/x, 'echo one >> deps/log', 'echo built; test "$STOP" != build || sleep 1000']
  cache: {key: k, paths: [deps]}
  artifacts: {paths: [out]}
check:
  stage: test
  needs: [build]
  services: [{name: `+e.image+`, alias: db, command: [sh, -c, 'echo db is up; sleep 1000']}]
  script:
    - echo "$(cat out/x), $(cat deps/log)"
    - echo '<testsuite><testcase name="a"/></testsuite>' > junit.xml
    - 'echo total 81.5%; test "$STOP" != check || sleep 1000'
  after_script: ['echo after $CI_JOB_STATUS; test "$STOP" != after || sleep 1000']
  coverage: '/total (\d+\.\d+)%/'
  cache: {key: k, paths: [deps]}
  artifacts: {when: always, reports: {junit: junit.xml}}
ship: {stage: deploy, resource_group: live, script: [cat out/x, echo shipped]}
`)
}

// It runs to its end, and what it measures is told.
func TestAWholeProjectInContainers(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *engineUnderTest) {
		p := wholeProject(t, e)
		run := e.start(p, "-cache", "caches", "-report", "report.html")
		assert.Equal(t, 0, run.Wait(), run.Stdout()+run.Stderr())
		out := run.Stdout()
		assert.Contains(t, out, "[check] made, one\n")
		assert.Contains(t, out, "[ship] made\n")
		assert.Contains(t, row(t, out, "check"), " 1 81.5%")
		assert.Contains(t, out, "3 success, ")
		assert.Contains(t, p.read("report.html"), "<p>Coverage: 81.5%.</p>")
		e.nothingIsLeft(p)
	})
}

// holding puts a client before that of the engine, which waits in those commands that a pattern of bash has. reached waits until
// such a command has come, release lets it go on.
func (e *engineUnderTest) holding(t *testing.T, pattern string) (reached, release func()) {
	t.Helper()
	dir := t.TempDir()
	client := filepath.Join(dir, "client")
	text := "case \" $* \" in " + pattern + ") touch " + dir + "/asked; until [ -e " + dir + "/go ]; do sleep 0.02; done;; esac\nexec \"$@\"\n"
	program(t, client, text)
	e.client = client + " " + e.client
	reached = func() {
		until(t, "the command "+pattern, func() bool { _, err := os.Stat(dir + "/asked"); return err == nil })
	}
	return reached, func() { require.NoError(t, os.WriteFile(dir+"/go", nil, 0o644)) }
}

// Ctrl-C at every stage of it: as the container of a job is made, while the first script runs, as a service is started, while a
// script runs beside that, and in after_script, which only a second signal ends.
func TestAWholeProjectIsStoppedAtEveryStage(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *engineUnderTest) {
		for name, tc := range map[string]struct {
			mark, hangs, holds string
			signals            []syscall.Signal
			job, not           string
			makes              [2]bool // the container of the job, that of its service
		}{
			"a network is made":   {"", "", "*' network create '*'-build-1-net '*", []syscall.Signal{syscall.SIGINT}, "build", "[build] $", [2]bool{}},
			"a container is made": {"", "", "*' run '*'-build-1-job '*", []syscall.Signal{syscall.SIGINT}, "build", "[build] $", [2]bool{true, false}},
			"a script":            {"[build] built", "build", "", []syscall.Signal{syscall.SIGINT}, "build", "[check] $", [2]bool{}},
			"a service is made":   {"", "", "*' run '*'-check-1-service-1 '*", []syscall.Signal{syscall.SIGINT}, "check", "[check] $", [2]bool{false, true}},
			"a script beside it":  {"[check] total 81.5%", "check", "", []syscall.Signal{syscall.SIGINT}, "check", "[ship] $", [2]bool{}},
			"after_script":        {"[check] after success", "after", "", []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}, "check", "[ship] $", [2]bool{}},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p, own := wholeProject(t, e), *e
				reached, release := func() {}, func() {}
				if tc.holds != "" {
					reached, release = own.holding(t, tc.holds)
				}
				run := own.start(p, "-cache", "caches", "-var", "STOP="+tc.hangs)
				reached()
				run.WaitFor(tc.mark)
				for _, sig := range tc.signals {
					run.Signal(sig)
				}
				run.WaitFor("[ship] == canceled") // the signal is heard
				release()
				assert.Contains(t, []int{130, 143}, run.Wait(), run.Stdout()+run.Stderr())
				assert.Regexp(t, "canceled 1 .*stopped by signal: ", row(t, run.Stdout(), tc.job))
				assert.Regexp(t, "canceled - - (aborted: )?stopped by signal: ", row(t, run.Stdout(), "ship"))
				assert.NotContains(t, run.Stdout(), tc.not)
				if tc.holds != "" && e.home != "" {
					made := strings.Join(slices.DeleteFunc(e.calls(t, "run "), func(call string) bool { return !strings.Contains(call, p.dir) }), "\n")
					assert.Equal(t, tc.makes[0], strings.Contains(made, "-"+tc.job+"-1-job "), "nothing is started after a stop")
					assert.Equal(t, tc.makes[1], strings.Contains(made, "-"+tc.job+"-1-service-1 "), "a start is not cut off: nobody knows what a client leaves that is ended in the middle")
				}
				e.nothingIsLeft(p)
			})
		}
	})
}

// Ctrl-C while the cache of a job is kept, for which it waits: cache and artifacts are kept all the same, and the job has
// succeeded.
func TestAStopWhileCacheAndArtifactsAreKept(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *engineUnderTest) {
		p := wholeProject(t, e)
		locks := filepath.Join(p.dir, "caches", ".locks")
		require.NoError(t, os.MkdirAll(locks, 0o755))
		door, err := os.Create(filepath.Join(locks, "cache-k"))
		require.NoError(t, err)
		defer func() { _ = door.Close() }()
		require.NoError(t, syscall.Flock(int(door.Fd()), syscall.LOCK_EX))

		run := e.start(p, "-cache", "caches", "-var", "STOP=")
		run.WaitFor("[build] cirunner: another job, or another run, has the cache cache-k")
		run.Signal(syscall.SIGINT)
		run.WaitFor("[ship] == canceled")
		require.NoError(t, door.Close())
		assert.Equal(t, 130, run.Wait(), run.Stdout()+run.Stderr())
		assert.Contains(t, run.Stdout(), "[build] cirunner: cache cache-k: 1 file kept\n")
		assert.Contains(t, run.Stdout(), "[build] cirunner: 1 artifact kept\n")
		assert.Contains(t, row(t, run.Stdout(), "build"), "success 1 ")
		assert.Contains(t, row(t, run.Stdout(), "check"), "canceled - - stopped by signal: interrupt")
		e.nothingIsLeft(p)
	})
}

// The services of a job are reached by their aliases, and are waited for: longer than the job's own container takes to start.
func TestAServiceOfAContainerIsReached(t *testing.T) {
	t.Parallel()
	e := realEngine(t)
	p := newProject(t, `
job:
  image: `+e.image+`
  services:
    - name: `+e.image+`
      alias: web
      command: [sh, -c, 'sleep 8; echo it answers > /tmp/x; exec busybox httpd -f -p 8080 -h /tmp']
      variables: {HEALTHCHECK_TCP_PORT: "8080"}
  script: [busybox wget -q -O - http://web:8080/x]
`)
	run := e.start(p)
	assert.Equal(t, 0, run.Wait(), run.Stdout()+run.Stderr())
	assert.Contains(t, run.Stdout(), "[job] it answers\n")
	e.nothingIsLeft(p)
}
