//go:build unix

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/cirunner/internal/scripttest"
	"github.com/ambit-go/ambit/clitest"
)

func TestMain(m *testing.M) { scripttest.Main(m, map[string]func(){"cirunner": main}, removePodman) }

func TestScripts(t *testing.T) { scripttest.Scripts(t, scriptParams()) }

// A project is a directory with a pipeline file.
type project struct {
	t   *testing.T
	dir string
	env []string // beside that of the test
}

func newProject(t *testing.T, pipeline string) *project {
	t.Helper()
	p := &project{t: t, dir: t.TempDir()}
	p.write("ci.yml", pipeline)
	return p
}

func (p *project) write(name, text string) {
	p.t.Helper()
	require.NoError(p.t, os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o644))
}

// program writes a script that others start. No process of this one is being started meanwhile: it would have the file open
// for writing until it has become its program, and the script could not be started as long as that.
func program(t *testing.T, path, script string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/bash\n"+script), 0o755))
}

func (p *project) read(name string) string {
	p.t.Helper()
	data, err := os.ReadFile(filepath.Join(p.dir, name))
	require.NoError(p.t, err)
	return string(data)
}

// start starts cirunner in the project.
func (p *project) start(args ...string) *clitest.Process {
	p.t.Helper()
	return clitest.Start(p.t, p.in, "cirunner", append(args, "ci.yml")...)
}

// waitForAll waits until lines with these texts were printed, in any order.
func waitForAll(run *clitest.Process, texts ...string) {
	for len(texts) > 0 {
		line := run.WaitFor("")
		texts = slices.DeleteFunc(texts, func(text string) bool { return strings.Contains(line, text) })
	}
}

// in has a command run in the project.
func (p *project) in(c *exec.Cmd) { c.Dir, c.Env = p.dir, append(os.Environ(), p.env...) }

// signalFile returns the path of a file, which jobs know as $GO.
func (p *project) signalFile() string {
	path := filepath.Join(p.t.TempDir(), "go")
	p.env = append(p.env, "GO="+path)
	return path
}

// row returns the row of a job in the table: its state, attempts and cause.
func row(t *testing.T, stdout, job string) string {
	t.Helper()
	_, table, ok := strings.Cut(stdout, "\nJOB ")
	require.True(t, ok, "no table in\n%s", stdout)
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, job+"  ") {
			return strings.Join(strings.Fields(line), " ")
		}
	}
	t.Fatalf("no %q in\n%s", job, table)
	return ""
}

// processes returns those that work in a directory, or below, or have it in
// their environment.
func processes(t *testing.T, dir string) []string {
	t.Helper()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("needs /proc")
	}
	var found []string
	all, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	for _, p := range all {
		cwd, _ := os.Readlink(filepath.Join(p, "cwd"))
		environ, _ := os.ReadFile(filepath.Join(p, "environ"))
		if strings.HasPrefix(cwd, dir) || strings.Contains(string(environ), "="+dir) {
			cmdline, _ := os.ReadFile(filepath.Join(p, "cmdline"))
			found = append(found, p+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	return found
}

// nothingIsLeft checks that no process works in the project, and no file is left
// of the run but its logs and artifacts.
func (p *project) nothingIsLeft() {
	p.t.Helper()
	assert.Empty(p.t, processes(p.t, p.dir))
	runs, err := filepath.Glob(filepath.Join(p.dir, ".cirunner", "[0-9]*", "*"))
	require.NoError(p.t, err)
	for _, r := range runs {
		assert.Regexp(p.t, regexp.MustCompile(`/(logs|artifacts)$`), r)
	}
}

// until waits for a condition that another process brings about.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	_, err := async.Poll(t.Context(), async.Every(hundredth), func(context.Context) (bool, bool, error) {
		return true, holds(), nil
	}).Await(t.Context(), patience)
	require.NoError(t, err, "%s", what)
}
