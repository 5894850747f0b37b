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

// The third signal ends the runner at once, though the engine hangs as the container is to be killed. The
// next run removes what is left.
func TestTheThirdSignalLeavesAContainerToTheNextRun(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *engineUnderTest) {
		p := newProject(t, "a: {image: "+e.image+", script: [\"trap '' TERM; echo up; while :; do sleep 0.1; done\"], cirunner: {grace: 1h}}\n")
		hang, asked := filepath.Join(p.dir, "hang"), filepath.Join(p.dir, "asked")
		slow := filepath.Join(t.TempDir(), "slow") // the client, but for what would end the container
		program(t, slow, "case \" $* \" in *' KILL '*|*-KILL*|*' rm '*) [ ! -e "+hang+" ] || touch "+asked+"; while [ -e "+hang+" ]; do sleep 0.05; done;; esac\nexec \"$@\"\n")
		client := e.client
		e.client = slow + " " + client
		p.write("hang", "")
		run := e.start(p)
		run.WaitFor("[a] up")
		run.Signal(syscall.SIGINT)
		run.Signal(syscall.SIGTERM)
		until(t, "the container is to be killed", func() bool { _, err := os.Stat(asked); return err == nil })
		run.Signal(syscall.SIGINT)
		assert.Contains(t, []int{130, 143}, run.Wait(), run.Stderr())
		e.client = client
		require.Len(t, e.containers(p), 1)
		require.NoError(t, os.Remove(hang))
		p.write("ci.yml", "a: {script: [echo again]}\n")
		next := e.start(p, "-kill-stale")
		assert.Equal(t, 0, next.Wait(), next.Stderr())
		e.nothingIsLeft(p)
	})
}

// SIGQUIT: the job in the container goes on to its end, and the next one does not start.
func TestADrainInAContainer(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *engineUnderTest) {
		p := newProject(t, "stages: [one, two]\na: {stage: one, image: "+e.image+", script: ['echo up; until test -e go; do sleep 0.1; done; echo over'], after_script: [echo after $CI_JOB_STATUS]}\n"+
			"b: {stage: two, image: "+e.image+", script: [echo never]}\n")
		run := e.start(p)
		run.WaitFor("[a] up")
		run.Signal(syscall.SIGQUIT)
		run.WaitFor("[b] == canceled")
		p.write(".cirunner/1/jobs/001-a/go", "")
		assert.Equal(t, 131, run.Wait(), run.Stderr())
		assert.Contains(t, run.Stdout(), "[a] over\n")
		assert.Contains(t, run.Stdout(), "[a] after success\n")
		assert.Contains(t, row(t, run.Stdout(), "a"), "success 1 ")
		assert.NotContains(t, run.Stdout(), "never")
		e.nothingIsLeft(p)
	})
}

// A run that held a resource_group is killed, and its container goes on. The next run gets the group, for the lock was
// that of a process; and the container of the other run is gone before a job of the group begins.
func TestAResourceGroupOfAKilledRun(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *engineUnderTest) {
		p := newProject(t, "deploy: {image: "+e.image+", resource_group: live, script: ['echo up; sleep 1000']}\n")
		late := e.sweepingSlowly(t) // what a run has left is removed by the client that it had
		run := e.start(p)
		run.WaitFor("[deploy] up")
		run.Signal(syscall.SIGKILL)
		run.Wait()
		require.Len(t, e.containers(p), 1)
		require.NoError(t, os.Remove(late))
		p.write("ci.yml", "deploy: {image: "+e.image+", resource_group: live, script: ['echo up; until test -e go; do sleep 0.1; done']}\n"+
			"check: {image: "+e.image+", resource_group: live, script: [echo second]}\n")
		next := e.start(p, "-kill-stale")
		next.WaitFor("[deploy] up")
		assert.NoFileExists(t, late, "a container was started while that of the run that was killed was there")
		assert.Empty(t, e.containers(p), "that of the run that was killed")
		p.write(".cirunner/2/jobs/001-deploy/go", "")
		assert.Equal(t, 0, next.Wait(), next.Stderr())
		assert.Contains(t, row(t, next.Stdout(), "check"), "success 1 ")
		e.nothingIsLeft(p)
	})
}

// sweepingSlowly puts a client before that of the engine, which takes its time to remove what an earlier run has left. It returns
// the path of a file that is there if a container was started before that was done.
func (e *engineUnderTest) sweepingSlowly(t *testing.T) (late string) {
	t.Helper()
	dir := t.TempDir()
	client := filepath.Join(dir, "client")
	text := "#!/bin/bash\nd=" + dir + "\ncase \" $* \" in *' run '*) [ -e $d/swept ] || touch $d/late;;\n" +
		"*' rm '*) [ -e $d/swept ] || { sleep 2; \"$@\"; status=$?; touch $d/swept; exit $status; };; esac\nexec \"$@\"\n"
	require.NoError(t, os.WriteFile(client, []byte(text), 0o755))
	e.client = client + " " + e.client
	return filepath.Join(dir, "late")
}
