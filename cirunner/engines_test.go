//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/clitest"
)

// An engineUnderTest is an engine with nothing in it but what a test puts there.
type engineUnderTest struct {
	client string
	run    string
	image  string
	env    []string
	home   string // of the fake
}

// forEachEngine runs a test with an engine that is a script and with podman, where that can
// be run.
func forEachEngine(t *testing.T, f func(t *testing.T, e *engineUnderTest)) {
	t.Parallel()
	t.Run("a script", func(t *testing.T) {
		t.Parallel()
		f(t, fakeEngine(t))
	})
	t.Run("podman", func(t *testing.T) {
		t.Parallel()
		f(t, realEngine(t))
	})
}

func fakeEngine(t *testing.T) *engineUnderTest {
	t.Helper()
	needsSetsid(t)
	path, err := filepath.Abs("testdata/engine.sh")
	require.NoError(t, err)
	home := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(home, "images"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(home, "images", "tool"), nil, 0o644))
	return &engineUnderTest{client: path, image: "tool", env: []string{"FAKE_ENGINE=" + home}, home: home}
}

// podman has a store of its own with an image that is a static busybox.
var podman struct {
	once   sync.Once
	client []string
	lacks  string // why it cannot be used
	dir    string
}

const podmanImage = "localhost/cirunner-test"

func realEngine(t *testing.T) *engineUnderTest {
	t.Helper()
	podman.once.Do(preparePodman)
	if podman.lacks != "" {
		t.Skip("needs podman, runc and a static busybox: " + podman.lacks)
	}
	return &engineUnderTest{
		client: strings.Join(podman.client, " "), image: podmanImage,
		run: "--ulimit nofile=1024:1024 --ulimit nproc=1000:1000",
	}
}

func preparePodman() {
	dir, err := os.MkdirTemp("", "cir")
	if err != nil {
		podman.lacks = err.Error()
		return
	}
	podman.dir = dir
	podman.client = []string{
		"podman", "--root", dir + "/s", "--runroot", dir + "/r", "--storage-driver", "vfs", "--runtime", "runc", "--cgroup-manager=cgroupfs",
	}
	const script = `set -e
		mkdir -p root/bin root/tmp root/etc root/proc root/sys root/dev
		cp "$(command -v busybox)" root/bin/busybox
		for name in sh sleep echo cat ls test true false touch mkdir chmod env kill ps; do ln -s busybox root/bin/$name; done
		tar -C root -c . | "$@" import - ` + podmanImage + `
		"$@" run --rm --ulimit nofile=1024:1024 --ulimit nproc=1000:1000 ` + podmanImage + ` true
		"$@" network ls`
	cmd := exec.Command("bash", append([]string{"-c", script, "-"}, podman.client...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		text := strings.TrimSpace(string(out))
		podman.lacks = fmt.Sprintf("%v: %s", err, text[strings.LastIndexByte(text, '\n')+1:])
	}
}

// removePodman removes the store, with what a test has left there that has failed.
func removePodman() {
	if podman.dir == "" {
		return
	}
	if len(podman.client) > 0 {
		_ = exec.Command(podman.client[0], append(podman.client[1:], "rm", "--all", "--force", "--time", "0")...).Run()
	}
	_ = os.RemoveAll(podman.dir)
}

// start starts cirunner in a project.
func (e *engineUnderTest) start(p *project, args ...string) *clitest.Process {
	p.t.Helper()
	p.env = append(p.env, e.env...)
	args = append([]string{"-engine", e.client}, args...)
	if e.run != "" {
		args = append([]string{"-engine-run", e.run}, args...)
	}
	return p.start(args...)
}

// ask runs a command of the client.
func (e *engineUnderTest) ask(t *testing.T, args ...string) string {
	t.Helper()
	client := strings.Fields(e.client)
	cmd := exec.Command(client[0], append(client[1:], args...)...)
	cmd.Env = append(os.Environ(), e.env...)
	out, err := cmd.Output()
	require.NoError(t, err, "%v", args)
	return strings.TrimSpace(string(out))
}

// containers are those of a project.
func (e *engineUnderTest) containers(p *project) []string {
	p.t.Helper()
	return strings.Fields(e.ask(p.t, "ps", "--all", "--quiet", "--filter", "label=cirunner.run="+p.dir+"/.cirunner/1"))
}

// nothingIsLeft checks that the engine has nothing of the runs of a project, and that nothing
// else is left.
func (e *engineUnderTest) nothingIsLeft(p *project) {
	p.t.Helper()
	for run := range 4 {
		label := fmt.Sprintf("label=cirunner.run=%s/.cirunner/%d", p.dir, run+1)
		assert.Empty(p.t, e.ask(p.t, "ps", "--all", "--quiet", "--filter", label), "containers")
		assert.Empty(p.t, e.ask(p.t, "network", "ls", "--quiet", "--filter", label), "networks")
	}
	until(p.t, "clients of the engine that follow what is gone", func() bool { return len(processes(p.t, p.dir)) == 0 })
	p.nothingIsLeft()
}

// calls are the arguments with which the script was called that begin so.
func (e *engineUnderTest) calls(t *testing.T, prefix string) (calls []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(e.home, "calls"))
	require.NoError(t, err)
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, prefix) {
			calls = append(calls, strings.TrimSpace(line))
		}
	}
	return calls
}
