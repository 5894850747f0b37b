package parse

import (
	"testing"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A keyword that would be read and then have no effect is an error, or, where GitLab takes it,
// a warning, which is an error if the parser is strict.
func TestSettingsWithoutEffect(t *testing.T) {
	job := func(settings string) string { return "j: {script: x, " + settings + "}" }
	service := func(settings string) string {
		return "j: {script: x, services: [{name: a, command: x, " + settings + "}]}"
	}
	for _, c := range []struct{ data, want string }{
		{job("retry: {when: script_failure}"), "1:23: retry without max: it has no effect without max"},
		{job("retry: {}"), "1:23: retry without max: it has no effect without max"},
		{"default: {retry: {exit_codes: 3}}\nj: {script: x}", "1:18: retry without max: it has no effect without max"},
		{job("retry: {max: 1, when: []}"), "1:38: retry:when: it is an empty list"},
		{job("allow_failure: {}"), "1:31: allow_failure should be"},
		{job("allow_failure: {exit_codes: []}"), "1:31: allow_failure should be"},
		{service("timeout: 3s"), "1:49: a service's timeout is for its port to answer: it needs a port"},
		{service("healthcheck: {command: ''}"), "1:72: healthcheck:command should not be empty"},
		{service("port: 80, healthcheck: {command: []}"), "1:82: healthcheck:command should not be empty"},
		{service("port: 80, healthcheck: {command: ['', ' ']}"), "healthcheck:command should not be empty"},
		{service("healthcheck: {retries: 2}"), "a healthcheck needs a command, or the service a port"},
		{job("inherit: {default: [retri]}"), `1:36: inherit:default: "retri" cannot be in default; did you mean "retry"?`},
		{job("inherit: {default: [script]}"), `"script" cannot be in default; there are after_script, `},
		{"variables: {A: x}\n" + job("inherit: {variables: [AA]}"), `2:38: inherit:variables: there is no variable "AA" at the top of the file; did you mean "A"?`},
		{"b: {script: x, parallel: 2}\n" + job("needs: [{job: b, parallel: {}}]"), "2:43: needs:parallel should have a matrix"},
		{"b: {script: x, parallel: 2}\n" + job("needs: [{job: b, parallel: {matrix: []}}]"), "2:52: needs:parallel:matrix is empty"},
		{"include: {local: a.yml, ref: main}\nj: {script: x}", "1:30: include:ref: it has no effect without project"},
		{job("parallel: {matrix: []}"), "1:35: parallel:matrix is empty"},
	} {
		assert.Contains(t, wrong(t, c.data).Error(), c.want, "%s", c.data)
	}
}

// These switch something off, or take it over from elsewhere.
func TestSettingsThatTakeSomethingAway(t *testing.T) {
	p := right(t, `
variables: {A: "1", B: "2"}
default: {retry: {max: 2, when: script_failure}}
.base: {script: x, retry: {when: always}}
merged: {extends: .base, retry: {max: 1}}
off: {extends: .base, retry: {max: 0}}
few: {script: x, inherit: {default: [timeout], variables: [A]}}
`)
	require.Equal(t, pipeline.Retry{Max: 1, When: []pipeline.Failure{pipeline.AnyFailure}}, p.Job("merged").Retry)
	require.Zero(t, p.Job("off").Retry.Max)
	require.Zero(t, p.Job("few").Retry)
	require.Equal(t, []string{"A=1"}, values(p.Job("few")))
}

// A keyword at the top without a value is as good as none.
func TestNothingAtTheTop(t *testing.T) {
	p := right(t, "variables:\nstages:\ndefault: ~\nbefore_script:\nimage: ~\nj: {script: x}\n")
	require.Equal(t, []string{"build", "test", "deploy"}, p.Stages)
	require.Empty(t, p.Jobs[0].Variables)
}

func TestEmptyDocumentsAreNone(t *testing.T) {
	for _, end := range []string{"---\n", "---\n---\n# a comment\n", "...\n", "--- ~\n"} {
		require.Len(t, right(t, "---\nj: {script: x}\n"+end).Jobs, 1)
	}
}

// The mark at the beginning, which some editors write, is no column.
func TestPlacesAfterAByteOrderMark(t *testing.T) {
	const data = "j: {script: x, retry: 9}\n"
	require.Equal(t, wrong(t, data).Detail(), wrong(t, "\ufeff"+data).Detail())
	require.Equal(t, wrong(t, "j: \a").Detail(), wrong(t, "\ufeffj: \a").Detail())
}
