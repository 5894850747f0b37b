//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// failing puts a client before that of the engine, which fails as long as a file is there, in those commands that a
// pattern of bash has. It returns the path of the file.
func (e *engineUnderTest) failing(t *testing.T, pattern string) (down string) {
	t.Helper()
	dir := t.TempDir()
	down = filepath.Join(dir, "down")
	client := filepath.Join(dir, "client")
	text := "if [ -e " + down + " ]; then case \" $* \" in " + pattern + ") echo it is down >&2; exit 1;; esac; fi\nexec \"$@\"\n"
	program(t, client, text)
	e.client = client + " " + e.client
	return down
}

// The engine does not remove a container at the end of its job: the run says so, and the next one removes it.
func TestAContainerThatIsNotRemovedIsLeftToTheNextRun(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *engineUnderTest) {
		down := e.failing(t, "*' rm '*")
		p := newProject(t, "a: {image: "+e.image+", script: [echo hello]}\n")
		require.NoError(t, os.WriteFile(down, nil, 0o644))
		run := e.start(p)
		assert.Equal(t, 1, run.Wait(), run.Stderr())
		assert.Contains(t, row(t, run.Stdout(), "a"), "success 1 ")
		assert.Contains(t, run.Stderr(), "cannot tidy up, the next run tries again: cannot remove what has the label cirunner.run="+p.dir+"/.cirunner/1: ")
		require.Len(t, e.containers(p), 1)

		p.write("ci.yml", "a: {script: [echo again]}\n")
		told := p.start()
		assert.Equal(t, 0, told.Wait(), told.Stderr())
		assert.Contains(t, told.Stdout(), "== run 1 could not remove its containers; its logs stay in ")
		assert.Contains(t, told.Stdout(), "it is down; the next run tries again\n")
		require.Len(t, e.containers(p), 1)

		require.NoError(t, os.Remove(down))
		next := p.start()
		assert.Equal(t, 0, next.Wait(), next.Stderr())
		assert.Contains(t, next.Stdout(), "== run 1: its containers are removed, 1 of them\n")
		e.nothingIsLeft(p)
	})
}

// A job's end finds the engine down, the end of the run finds it up again: nothing is left, and nothing is wrong.
func TestTheEndOfARunRemovesWhatAJobCouldNot(t *testing.T) {
	t.Parallel()
	e := fakeEngine(t)
	down := e.failing(t, "*' rm '*")
	p := newProject(t, "a: {image: "+e.image+", script: [echo hello]}\nb: {stage: deploy, script: [rm "+down+"]}\n")
	require.NoError(t, os.WriteFile(down, nil, 0o644))
	run := e.start(p)
	assert.Equal(t, 0, run.Wait(), run.Stderr())
	assert.Contains(t, run.Stdout(), "[a] cirunner: cannot remove what has the label ")
	e.nothingIsLeft(p)
}

// The runner is killed, and the engine is down as the next run begins: a later run removes the container.
func TestTheEngineIsDownAfterTheRunnerIsKilled(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *engineUnderTest) {
		down := e.failing(t, "*")
		p := newProject(t, "a: {image: "+e.image+", script: ['echo up; exec sleep 1000']}\n")
		run := e.start(p)
		run.WaitFor("[a] up")
		run.Signal(syscall.SIGKILL)
		run.Wait()
		require.NoError(t, os.WriteFile(down, nil, 0o644))
		p.write("ci.yml", "a: {script: [echo again]}\n")
		told := p.start("-kill-stale")
		assert.Equal(t, 0, told.Wait(), told.Stderr())
		assert.Contains(t, told.Stdout(), "it is down; the next run tries again\n")
		require.NoError(t, os.Remove(down))
		require.Len(t, e.containers(p), 1)
		next := p.start("-kill-stale")
		assert.Equal(t, 0, next.Wait(), next.Stderr())
		assert.Contains(t, next.Stdout(), "== run 1: its containers are removed, 1 of them\n")
		last := p.start()
		assert.Equal(t, 0, last.Wait(), last.Stderr())
		e.nothingIsLeft(p)
	})
}

// The runner is killed, and its directory removed: the next run has its number, and removes what has the names that it needs.
func TestTheDirectoryOfAKilledRunIsRemoved(t *testing.T) {
	t.Parallel()
	e := fakeEngine(t)
	p := newProject(t, "a: {image: tool, script: ['echo up; exec sleep 1000']}\n")
	run := e.start(p)
	run.WaitFor("[a] up")
	run.Signal(syscall.SIGKILL)
	run.Wait()
	require.NoError(t, os.RemoveAll(filepath.Join(p.dir, ".cirunner")))
	p.write("ci.yml", "a: {image: tool, script: [echo again]}\n")
	next := e.start(p)
	assert.Equal(t, 0, next.Wait(), next.Stdout()+next.Stderr())
	assert.Contains(t, next.Stdout(), "[a] again\n")
	e.nothingIsLeft(p)
}

// The runner is killed, and the address of its engine was in its environment alone: the next run finds its containers by that.
func TestTheAddressOfTheEngineOfAKilledRun(t *testing.T) {
	t.Parallel()
	e := fakeEngine(t)
	client := filepath.Join(t.TempDir(), "client")
	program(t, client, "export FAKE_ENGINE=$DOCKER_HOST\nexec "+e.client+" \"$@\"\n")
	there := &engineUnderTest{client: client, image: e.image, env: []string{"DOCKER_HOST=" + e.home}, home: e.home}
	p := newProject(t, "a: {image: tool, script: ['echo up; exec sleep 1000']}\n")
	run := there.start(p)
	run.WaitFor("[a] up")
	run.Signal(syscall.SIGKILL)
	run.Wait()
	require.Len(t, there.containers(p), 1)
	p.env = []string{"DOCKER_HOST=" + t.TempDir()}
	p.write("ci.yml", "a: {script: [echo again]}\n")
	next := p.start("-kill-stale")
	assert.Equal(t, 0, next.Wait(), next.Stderr())
	assert.Contains(t, next.Stdout(), "== run 1: its containers are removed, 1 of them\n")
	until(t, "nothing of the run that was killed runs", func() bool { return len(processes(t, p.dir)) == 0 })
	last := p.start()
	assert.Equal(t, 0, last.Wait(), last.Stderr())
	there.nothingIsLeft(p)
}
