//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const secretValue = "s3cr3t-value"

// withSecrets writes a file of project variables, for its owner alone.
func (p *project) withSecrets(text string) *project {
	p.t.Helper()
	p.write("vars.yml", text)
	require.NoError(p.t, os.Chmod(filepath.Join(p.dir, "vars.yml"), 0o600))
	return p
}

// isSecret checks that a value is in no text, and in no file of the runs but those that the job has made.
func (p *project) isSecret(texts ...string) {
	p.t.Helper()
	assert.NotContains(p.t, strings.Join(texts, ""), secretValue)
	for _, pattern := range []string{"*.html", "*.xml", ".cirunner/*/logs/*"} {
		files, err := filepath.Glob(filepath.Join(p.dir, pattern))
		require.NoError(p.t, err)
		for _, f := range files {
			data, err := os.ReadFile(f)
			require.NoError(p.t, err)
			assert.NotContains(p.t, string(data), secretValue, f)
		}
	}
}

const maskedKey = "- {name: KEY, value: " + secretValue + ", masked: true}\n"

// A masked value is in nothing that a run says: log, table, report, whatever text of the job it is in.
func TestSecretsOfARunAreHidden(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ file, variables, says string }{
		"tests":            {"a: {script: ['echo \"<testsuite><testcase name=\\\"n-$KEY\\\"><failure message=\\\"m-$KEY\\\"/></testcase></testsuite>\" > j.xml'], artifacts: {reports: {junit: j.xml}}}\n", maskedKey, "m-[MASKED]"},
		"a long message":   {"a: {script: ['echo \"<testsuite><testcase name=\\\"n\\\"><failure message=\\\"$(printf %0495d 0)$KEY\\\"/></testcase></testsuite>\" > j.xml'], artifacts: {reports: {junit: j.xml}}}\n", maskedKey, "00[MAS"},
		"a resource_group": {"a: {script: [echo], resource_group: g-$KEY}\nb: {script: [echo], resource_group: g-$KEY}\n", maskedKey, "resource_group g-[MASKED]"},
		"a commit":         {"a: {script: [echo]}\n", maskedKey, "feature/[MASKED]"},
		"a child pipeline": {
			"down: {trigger: {include: child.yml}, environment: prod, variables: {AUTH: \"Bearer $KEY\"}}\n",
			"- {name: KEY, value: " + secretValue + ", masked: true, environment_scope: prod}\n", "auth is Bearer [MASKED]",
		},
		"one that is resolved": {
			"down: {trigger: {include: child.yml}, environment: prod, variables: {VALUE: " + secretValue + ", AUTH: \"Bearer $KEY\"}}\n",
			"- {name: KEY, value: $VALUE, masked: true, environment_scope: prod}\n", "auth is Bearer [MASKED]",
		},
		"a file": {
			"down: {trigger: {include: child.yml}, environment: prod, variables: {AUTH: $KEY}}\n",
			"- {name: KEY, value: " + secretValue + ", masked: true, type: file}\n", "auth is /",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, tc.file).withSecrets(tc.variables)
			p.write("child.yml", "a: {script: ['echo \"auth is $AUTH\"']}\n")
			run := p.start("-variables", "vars.yml", "-report", "report.html", "-junit", "junit.xml", "-branch", "feature/"+secretValue)
			assert.Equal(t, 0, run.Wait(), run.Stderr())
			assert.Contains(t, run.Stdout()+p.read("report.html"), tc.says)
			if name == "one that is resolved" {
				return // its text is in a variable that is not masked
			}
			p.isSecret(run.Stdout(), run.Stderr())
		})
	}
}

// A masked value is in nothing that is said before a run, and by lint and list.
func TestSecretsAreHiddenBeforeARun(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ file, says string }{
		"an error":  {"include: {remote: https://x.invalid/$KEY/f.yml}\na: {script: [echo]}\n", "x.invalid/[MASKED]/f.yml"},
		"a warning": {"include: [{local: 'x/$KEY/*.yml'}]\na: {script: [echo]}\n", "x/[MASKED]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, verb := range [][]string{{"lint"}, {"list"}, nil} {
				p := newProject(t, tc.file).withSecrets(maskedKey)
				run := p.start(append(verb, "-variables", "vars.yml")...)
				run.Wait()
				assert.Contains(t, run.Stdout()+run.Stderr(), tc.says, verb)
				p.isSecret(run.Stdout(), run.Stderr())
			}
		})
	}
}

// A health check that prints has nowhere to print to, secrets or not.
func TestAHealthCheckPrintsBesideASecret(t *testing.T) {
	t.Parallel()
	p := newProject(t, "a: {services: [{name: s, command: exec sleep 1000, healthcheck: {command: 'echo it is well; touch $CI_PROJECT_DIR/checked', interval: 10ms}}], script: ['until test -e checked; do sleep 0.01; done; sleep 0.1; echo done']}\n").withSecrets(maskedKey)
	run := p.start("-variables", "vars.yml")
	assert.Equal(t, 0, run.Wait(), run.Stdout()+run.Stderr())
	assert.Contains(t, run.Stdout(), "[a] done\n")
	p.nothingIsLeft()
}

// The lines of a value are hidden as the value is: a key is seldom printed as a whole.
func TestLinesOfAMaskedValueAreHidden(t *testing.T) {
	t.Parallel()
	p := newProject(t, `a: {script: ['echo "$KEY" | sed "s/^/> /"', 'echo "$OTHER" | sed "s/^/> /"'], variables: {OTHER: "third line\n`+secretValue+`"}}`)
	p.env = append(p.env, "KEY=first line\n"+secretValue)
	run := p.start("-mask", "KEY", "-mask", "OTHER")
	assert.Equal(t, 0, run.Wait(), run.Stdout()+run.Stderr())
	assert.Equal(t, 4, strings.Count(run.Stdout(), "> [MASKED]\n"), run.Stdout())
	p.isSecret(run.Stdout(), run.Stderr())
}
