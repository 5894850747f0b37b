package parse

import (
	"strings"
	"testing"
	"time"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/stretchr/testify/require"
)

// The rules of GitLab's pages about extends, !reference and needs, a case for
// each statement. Rules, only and variables are in rules_test.go.

func TestExtendsOfGitLabsPages(t *testing.T) {
	for _, c := range []struct {
		name, data string
		check      func(t *testing.T, j *pipeline.Job)
	}{
		{"a job takes what it does not say itself", `
.tests: {stage: test, script: rake test, when: always}
j: {extends: .tests, script: rake rspec}`,
			func(t *testing.T, j *pipeline.Job) {
				require.Equal(t, []string{"rake rspec"}, j.Script)
				require.Equal(t, pipeline.Always, j.When)
			}},
		{"variables are merged, and lists are not", `
.base: {variables: {A: "1", B: "1"}, script: [one, two]}
j: {extends: .base, variables: {B: "2", C: "2"}, script: [three]}`,
			func(t *testing.T, j *pipeline.Job) {
				require.Equal(t, []string{"A=1", "B=2", "C=2"}, values(j))
				require.Equal(t, []string{"three"}, j.Script)
			}},
		{"of several parents the last is the strongest", `
.a: {variables: {URL: a, OWN: a}, timeout: 1m, script: a}
.b: {variables: {URL: b}, timeout: 2m}
j: {extends: [.a, .b], variables: {OWN: j}}`,
			func(t *testing.T, j *pipeline.Job) {
				require.Equal(t, []string{"URL=b", "OWN=j"}, values(j))
				require.Equal(t, 2*time.Minute, j.Timeout)
			}},
		{"a key is taken away by null, a mapping emptied", `
.base: {script: x, variables: {A: "1"}, artifacts: {paths: [out], expire_in: 1 day}, retry: 2}
j: {extends: .base, variables: null, artifacts: {}, retry: ~}`,
			func(t *testing.T, j *pipeline.Job) {
				require.Empty(t, j.Variables)
				require.Equal(t, []string{"out"}, j.Artifacts.Paths, "an empty mapping adds nothing")
				require.Zero(t, j.Retry.Max)
			}},
		{"parents that extend others", `
.a: {script: x, timeout: 1m}
.b: {extends: .a, variables: {B: b}}
j: {extends: .b}`,
			func(t *testing.T, j *pipeline.Job) {
				require.Equal(t, time.Minute, j.Timeout)
				require.Equal(t, []string{"B=b"}, values(j))
			}},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(t, right(t, c.data).Job("j")) })
	}
}

func TestReferencesOfGitLabsPages(t *testing.T) {
	p := right(t, `
.setup: {script: [echo make environment]}
.teardown: {after_script: [echo remove environment]}
.vars: {variables: {URL: http://example.org, IMPORTANT: "yes"}}
.nested: {script: [!reference [.setup, script], echo nested]}
j:
  script: [!reference [.setup, script], echo own]
  after_script: [!reference [.teardown, after_script]]
  variables: {URL: !reference [.vars, variables, URL]}
whole: {script: echo, variables: !reference [.vars, variables]}
deep: {script: [!reference [.nested, script]]}
`)
	require.Equal(t, []string{"echo make environment", "echo own"}, p.Job("j").Script)
	require.Equal(t, []string{"echo remove environment"}, p.Job("j").After)
	require.Equal(t, []string{"URL=http://example.org"}, values(p.Job("j")))
	require.Equal(t, []string{"URL=http://example.org", "IMPORTANT=yes"}, values(p.Job("whole")))
	require.Equal(t, []string{"echo make environment", "echo nested"}, p.Job("deep").Script)
}

// A job with needs does not wait for its stage; one without waits for all before.
func TestNeedsOfGitLabsPages(t *testing.T) {
	p := right(t, `
stages: [build, test, deploy]
linux: {stage: build, script: x, artifacts: {paths: [out]}}
mac: {stage: build, script: x, artifacts: {paths: [out]}}
lint: {stage: test, needs: [], script: x}
linux test: {stage: test, needs: [linux], script: x}
mac test: {stage: test, needs: [{job: mac, artifacts: false}], script: x}
same stage: {stage: test, needs: [lint], script: x}
some: {stage: test, script: x, dependencies: [mac]}
none: {stage: test, script: x, dependencies: []}
all: {stage: deploy, script: x}
`)
	waits := func(name string) (waits, gets string) {
		j := p.Job(name)
		return strings.Join(names(j.WaitsFor), ", "), strings.Join(names(j.Fetch), ", ")
	}
	for name, want := range map[string][2]string{
		"lint":       {"", ""},
		"linux test": {"linux", "linux"},
		"mac test":   {"mac", ""},
		"same stage": {"lint", ""},
		"some":       {"linux, mac", "mac"},
		"none":       {"linux, mac", ""},
		"all":        {"linux, mac, lint, linux test, mac test, same stage, some, none", "linux, mac"},
	} {
		w, g := waits(name)
		require.Equal(t, want, [2]string{w, g}, name)
	}
}
