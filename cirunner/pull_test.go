//go:build unix

package main

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

// When an image is fetched; what is said if it cannot be had.
func TestPullPolicies(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		image  string
		pulls  int
		status int
		says   string
	}{
		"there":               {"{name: tool}", 0, 0, "[a] hello\n"},
		"not there":           {"{name: other}", 1, 0, "[a] pulled other\n[a] $ echo hello\n[a] hello\n"},
		"always":              {"{name: tool, pull_policy: always}", 1, 0, "[a] cirunner: image: pulling tool\n[a] pulled tool\n"},
		"never and there":     {"{name: tool, pull_policy: never}", 0, 0, "[a] hello\n"},
		"never":               {"{name: other, pull_policy: never}", 0, 1, "the engine does not have other, or does not answer, and pull_policy is never: "},
		"it cannot be pulled": {"{name: nowhere}", 1, 1, "image: cannot pull nowhere: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := fakeEngine(t)
			p := newProject(t, "a: {image: "+tc.image+", script: [echo hello]}\n")
			run := e.start(p)
			assert.Equal(t, tc.status, run.Wait(), run.Stderr())
			assert.Contains(t, run.Stdout(), tc.says)
			assert.Len(t, e.calls(t, "pull "), tc.pulls)
			e.nothingIsLeft(p)
		})
	}
}

// A cancel before the script: while an image is pulled, and while a service is waited for.
func TestACancelBeforeTheScriptOfAContainer(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *engineUnderTest) {
		for name, tc := range map[string]struct{ image, service, log string }{
			"a pull":    {"slow", "", "cirunner: image: pulling slow"},
			"a service": {e.image, ", services: [{name: " + e.image + ", alias: db, command: [sh, -c, 'echo up; sleep 1000'], variables: {HEALTHCHECK_TCP_PORT: '1'}}]", "[a/db] up"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				if tc.image == "slow" && e.home == "" {
					t.Skip("needs a registry that is slow")
				}
				p := newProject(t, "a: {image: "+tc.image+tc.service+", script: [echo never]}\n")
				run := e.start(p)
				run.WaitFor(tc.log)
				run.Signal(syscall.SIGTERM)
				assert.Equal(t, 143, run.Wait(), run.Stderr())
				assert.NotContains(t, run.Stdout(), "never\n")
				assert.Contains(t, row(t, run.Stdout(), "a"), "canceled 1 ")
				e.nothingIsLeft(p)
			})
		}
	})
}

// Entrypoint, user and platform are the engine's affair.
func TestWhatAnImageSays(t *testing.T) {
	t.Parallel()
	e := fakeEngine(t)
	p := newProject(t, "a: {image: {name: tool, entrypoint: [/init, -x], docker: {user: nobody, platform: linux/arm64}}, script: [echo hello]}\n"+
		"b: {image: {name: tool, entrypoint: ['']}, script: [echo hello]}\n")
	run := e.start(p, "-job", "a", "-engine-run", "--memory 1g")
	run.Wait()
	assert.Regexp(t, `--memory 1g .*--user nobody`, e.calls(t, "run ")[0])
	assert.Regexp(t, `--platform linux/arm64 .*--entrypoint /init .*tool -x sh -c trap`, e.calls(t, "run ")[0])
	e.nothingIsLeft(p)
	run = e.start(p, "-job", "b")
	assert.Equal(t, 0, run.Wait(), run.Stderr())
	assert.Regexp(t, `--entrypoint '' .*tool sh -c trap`, e.calls(t, "run ")[1])
}

// Without an engine a job with an image is refused: its script is not for this machine.
func TestWithoutAnEngine(t *testing.T) {
	t.Parallel()
	p := newProject(t, "a: {image: tool, services: [db], script: ['echo up > file']}\nb: {script: [echo b]}\n")
	run := p.start("-engine", "false")
	assert.Equal(t, 2, run.Wait())
	assert.Contains(t, run.Stderr(), `jobs with an image need a container engine ("a" runs in tool; 1 in all): start docker or podman, say with -engine how it is called, or run them on this machine with -host: no container engine answers; false ps: exit status 1`)
	assert.NoDirExists(t, p.dir+"/.cirunner")
	run = p.start("-engine", "false", "-job", "b")
	assert.Equal(t, 0, run.Wait(), run.Stderr())
	run = p.start("-host")
	assert.Equal(t, 0, run.Wait(), run.Stderr())
	assert.Contains(t, run.Stdout(), "warning: image: with -host jobs run on this machine")
	assert.Contains(t, run.Stdout(), "warning: a service as an image: ")
	run = p.start("-host", "-engine", "podman")
	assert.Equal(t, 2, run.Wait())
}

// A masked value is hidden where the client names the image that it pulls.
func TestAMaskedValueInAnImage(t *testing.T) {
	t.Parallel()
	e := fakeEngine(t)
	p := newProject(t, "a: {image: tool/$TOKEN, variables: {TOKEN: s3cr3t-value}, script: [echo hello]}\n")
	run := e.start(p, "-mask", "TOKEN")
	assert.Equal(t, 0, run.Wait(), run.Stderr())
	assert.Contains(t, run.Stdout(), "pulled tool/[MASKED]\n")
	p.isSecret(run.Stdout(), run.Stderr())
	e.nothingIsLeft(p)
}
