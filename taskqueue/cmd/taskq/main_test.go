package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The test program is taskq itself when it is told so.
func TestMain(m *testing.M) {
	if os.Getenv("TASKQ_TEST") != "" {
		main()
	}
	// The race detector would have each of many processes wait for a second at its end.
	if err := os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// taskq runs the program and returns its exit status and what it wrote.
func taskq(t *testing.T, store string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), "TASKQ_TEST=1", "TASKQ_STORE="+store)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if cmd.ProcessState == nil {
		require.NoError(t, err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func TestATaskFromTheCommandLineToItsEnd(t *testing.T) {
	store := "sqlite:" + filepath.Join(t.TempDir(), "tasks")
	ok := func(args ...string) string {
		t.Helper()
		status, out, errs := taskq(t, store, args...)
		require.Zero(t, status, "%v: %s", args, errs)
		return out
	}
	id := strings.TrimSpace(ok("enqueue", "-keep", "1h", "-unique", "k", `{"to": "ada"}`))
	status, _, errs := taskq(t, store, "enqueue", "-unique", "k", "x")
	assert.Equal(t, 1, status)
	assert.Contains(t, errs, id, "it names the holder")
	assert.Contains(t, ok("list"), id)
	ok("work", "-until-empty", "-exec", `read line; echo "got $line as $TASKQ_ID"`)
	shown := ok("show", id)
	assert.Contains(t, shown, "done")
	assert.Contains(t, shown, `got {\"to\": \"ada\"} as `+id)
	assert.Contains(t, ok("show", "-json", id), `"state":"done"`)
	assert.Contains(t, ok("stats"), "default")
	assert.Empty(t, ok("audit"))

	id = strings.TrimSpace(ok("enqueue", "-failures", "1", "x"))
	ok("work", "-until-empty", "-exec", "echo trying >&2; echo no such host >&2; exit 3")
	assert.Contains(t, ok("show", id), "sh: exit status 3: no such host\n")
	assert.Contains(t, ok("list", "-state", "dead"), id)
	ok("retry", id)
	ok("work", "-until-empty", "-exec", "exit 65")
	assert.Contains(t, ok("list", "-state", "dead"), id, "65 makes a dead letter")
	assert.Contains(t, ok("purge", "dead"), "1 tasks deleted")
}

func TestExitStatus(t *testing.T) {
	store := "sqlite:" + filepath.Join(t.TempDir(), "tasks")
	status, _, errs := taskq(t, store, "enqueue", "x")
	require.Zero(t, status, errs)
	for _, c := range []struct {
		status int
		args   string
		says   string
	}{
		{0, "-h", ""},
		{0, "enqueue -h", ""},
		{2, "", "a command is missing"},
		{2, "fly", "no command"},
		{2, "enqueue -fly", "not defined"},
		{2, "enqueue a b", "quotes"},
		{2, "enqueue -at tomorrow x", "is not a time"},
		{2, "enqueue -priority 8 x", "most urgent is 7"},
		{2, "enqueue -delay 5 x", "90s, 10m"},
		{2, "enqueue -delay -5s x", "negative"},
		{2, "list -state gone", "scheduled"},
		{2, "stats -queue a b", "use one of them"},
		{2, "work", "-exec"},
		{2, "stats -store nowhere", "sqlite:nowhere"},
		{2, "stats -store ftp:x", "sqlite"},
		{3, "show nobody", "no such task"},
		{3, "cancel nobody", "no such task"},
		{1, "stats -store sqlite:/nowhere/at/all", "no file"},
		{1, "enqueue -store sqlite:/nowhere/at/all x", "no such file"},
		{2, "stats -store sqlite:", "sqlite:tasks.db"},
		{2, "stats extra -store", "needs an argument"},
		{2, "list extra", "-queue"},
		{2, "show", "id of a task"},
		{2, "purge", "one state"},
		{2, "purge running", "cancel them first"},
		{1, "stats -store redis://127.0.0.1:1/0", "refused"},
	} {
		status, _, errs := taskq(t, store, strings.Fields(c.args)...)
		assert.Equal(t, c.status, status, "%s: %s", c.args, errs)
		assert.Contains(t, errs, c.says, c.args)
	}
}

func TestTheDemoEndsWithATrueReport(t *testing.T) {
	status, out, errs := taskq(t, "", "demo")
	assert.Zero(t, status, errs)
	assert.Contains(t, out, "tasks                   1000")
	assert.Contains(t, out, "faults                     0")
	assert.Contains(t, out, "killed worker 1")
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, report, _ := strings.Cut(string(readme), "\nthe auditor's report\n")
	report, _, _ = strings.Cut(report, "\n```")
	alike := func(s string) string {
		return regexp.MustCompile(` +[0-9]+`).ReplaceAllString(strings.TrimSpace(s), " #")
	}
	_, out, _ = strings.Cut(out, "\nthe auditor's report\n")
	assert.Equal(t, alike(out), alike(report), "the README shows what it writes")
}
