//go:build unix

package main

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
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

// Ctrl-C at every stage of it: as a container is made, while the first script runs, as a service is started, while a script
// runs beside that, and in after_script, which only a second signal ends.
func TestAWholeProjectIsStoppedAtEveryStage(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *engineUnderTest) {
		for name, tc := range map[string]struct {
			mark, hangs string
			signals     []syscall.Signal
			row         string // of the table; empty where the job may have got further
		}{
			"the first job begins": {"[build] == started", "build", []syscall.Signal{syscall.SIGINT}, ""},
			"a script":             {"[build] built", "build", []syscall.Signal{syscall.SIGINT}, "build"},
			"a service begins":     {"[check] == started", "check", []syscall.Signal{syscall.SIGINT}, ""},
			"a script beside it":   {"[check] total 81.5%", "check", []syscall.Signal{syscall.SIGINT}, "check"},
			"after_script":         {"[check] after success", "after", []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}, "check"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := wholeProject(t, e)
				run := e.start(p, "-cache", "caches", "-var", "STOP="+tc.hangs)
				run.WaitFor(tc.mark)
				for _, sig := range tc.signals {
					run.Signal(sig)
				}
				assert.Contains(t, []int{130, 143}, run.Wait(), run.Stdout()+run.Stderr())
				if tc.row != "" {
					assert.Contains(t, row(t, run.Stdout(), tc.row), "canceled 1 ")
					assert.Contains(t, row(t, run.Stdout(), tc.row), "stopped by signal: ", "the cause")
				}
				assert.Regexp(t, "canceled - - (aborted: )?stopped by signal: ", row(t, run.Stdout(), "ship"))
				e.nothingIsLeft(p)
			})
		}
	})
}

// The services of a job are reached by their aliases, and are waited for.
func TestAServiceOfAContainerIsReached(t *testing.T) {
	t.Parallel()
	e := realEngine(t)
	p := newProject(t, `
job:
  image: `+e.image+`
  services:
    - name: `+e.image+`
      alias: web
      command: [sh, -c, 'sleep 1; echo it answers > /tmp/x; exec busybox httpd -f -p 8080 -h /tmp']
      variables: {HEALTHCHECK_TCP_PORT: "8080"}
  script: [busybox wget -q -O - http://web:8080/x]
`)
	run := e.start(p)
	assert.Equal(t, 0, run.Wait(), run.Stdout()+run.Stderr())
	assert.Contains(t, run.Stdout(), "[job] it answers\n")
	e.nothingIsLeft(p)
}
