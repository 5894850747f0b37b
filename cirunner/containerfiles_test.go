//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sh runs commands in the project, before cirunner does.
func (p *project) sh(script string) {
	p.t.Helper()
	cmd := exec.Command("bash", "-ec", script)
	p.in(cmd)
	out, err := cmd.CombinedOutput()
	require.NoError(p.t, err, "%s", out)
}

// A project variable that is a file is one in a container, for whatever user is there, and is
// gone when the job is; a job on this machine does not let others read it.
func TestAFileOfAVariableInAContainer(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *engineUnderTest) {
		user := "65534"
		if e.home != "" {
			user = "0" // the script is no engine that knows users
		}
		p := newProject(t, `
job:
  image: {name: `+e.image+`, docker: {user: "`+user+`"}}
  script: ['echo "it says $(cat "$NOTE")"', 'echo "the key is $(cat "$KEY")"', 'test ! -w "$NOTE" || test "$(id -u)" = 0', 'echo "mode $(ls -l "$NOTE")"']
  after_script: ['echo "after: $(cat "$NOTE")"']
look: {script: ['ls -ld "${CI_PROJECT_DIR%/jobs/*}/scripts"']}
beside: {script: ['echo "here $(cat "$NOTE")"', 'echo "the key is $(cat "$KEY")"', 'echo "mode $(ls -l "$NOTE")"']}
`)
		p.write("vars.yml", "- {name: NOTE, value: \"from a file\\n\", type: file}\n- {name: KEY, value: s3cr3t-value, type: file, masked: true}\n")
		require.NoError(t, os.Chmod(filepath.Join(p.dir, "vars.yml"), 0o600))
		run := e.start(p, "-variables", "vars.yml")
		assert.Equal(t, 0, run.Wait(), run.Stdout()+run.Stderr())
		out := run.Stdout()
		assert.Contains(t, out, "[job] it says from a file\n")
		assert.Contains(t, out, "[job] after: from a file\n")
		assert.Contains(t, out, "[beside] here from a file\n")
		assert.Contains(t, out, "[beside] mode -rw-------")
		assert.Contains(t, out, "[job] the key is [MASKED]\n")
		assert.Contains(t, out, "[look] drwx------", "no other user of this machine comes to the files")
		assert.Contains(t, out, "[beside] the key is [MASKED]\n")
		p.isSecret(out, run.Stderr())
		e.nothingIsLeft(p)

		kept := e.start(p, "-variables", "vars.yml", "-keep")
		assert.Equal(t, 0, kept.Wait(), kept.Stdout()+kept.Stderr())
		files, err := filepath.Glob(filepath.Join(p.dir, ".cirunner/2/scripts/*/files"))
		require.NoError(t, err)
		assert.Empty(t, files, "they are gone with the jobs")
	})
}

// A job in a container has the submodules that it asks for, as repositories whose objects are there.
func TestSubmodulesInAContainer(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	forEachEngine(t, func(t *testing.T, e *engineUnderTest) {
		p := newProject(t, `
job:
  image: `+e.image+`
  variables: {GIT_SUBMODULE_STRATEGY: recursive}
  script:
    - echo "$(cat lib/l.txt), $(cat lib/inner/i.txt)"
    - for module in . lib lib/inner; do ls -d "$(cat $module/.git/objects/info/alternates)" > listed; done
    - echo changed > lib/l.txt; echo objects are there
plain: {image: `+e.image+`, script: [test ! -e lib/l.txt, echo nothing]}
`)
		p.env = append(p.env, "GIT_CONFIG_GLOBAL="+filepath.Join(t.TempDir(), "config"))
		p.sh(`git config --global user.name a; git config --global user.email a@b.c; git config --global protocol.file.allow always
			for r in inner lib; do git init -q -b main ../$r; done
			echo inner > ../inner/i.txt; git -C ../inner add .; git -C ../inner commit -qm inner
			echo lib > ../lib/l.txt; git -C ../lib submodule --quiet add "file://$PWD/../inner" inner; git -C ../lib add .; git -C ../lib commit -qm lib
			git init -q -b main; git submodule --quiet add "file://$PWD/../lib" lib; git submodule --quiet update --init --recursive
			git add .; git commit -qm project`)
		run := e.start(p)
		assert.Equal(t, 0, run.Wait(), run.Stdout()+run.Stderr())
		assert.Contains(t, run.Stdout(), "[job] lib, inner\n")
		assert.Contains(t, run.Stdout(), "[job] objects are there\n")
		assert.Contains(t, run.Stdout(), "[plain] nothing\n")
		assert.Equal(t, "lib\n", p.read("lib/l.txt"))
		e.nothingIsLeft(p)
	})
}

// A job on this machine makes a pipeline whose jobs have an image: the engine is looked for then. A run that
// is stopped, or killed, leaves nothing.
func TestAPipelineThatIsMadeHasContainers(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *engineUnderTest) {
		const gen = "gen: {script: ['cp in.txt c.yml'], stage: build, artifacts: {paths: [c.yml]}}\n" +
			"down: {trigger: {include: [{artifact: c.yml, job: gen}], strategy: depend}}\n"
		p := newProject(t, gen)
		p.write("in.txt", "a: {image: "+e.image+", script: ['echo up; sleep 1000'], after_script: [echo after $CI_JOB_STATUS]}\n")
		run := e.start(p)
		run.WaitFor("[down/a] up")
		assert.NotEmpty(t, e.containers(p))
		run.Signal(syscall.SIGINT)
		assert.Equal(t, 130, run.Wait(), run.Stderr())
		assert.Contains(t, run.Stdout(), "[down/a] after canceled\n")
		assert.Contains(t, row(t, run.Stdout(), "down/a"), "canceled 1 ")
		e.nothingIsLeft(p)

		killed := e.start(p)
		killed.WaitFor("[down/a] up")
		killed.Signal(syscall.SIGKILL)
		killed.Wait()
		p.write("ci.yml", "a: {script: [echo again]}\n")
		next := p.start("-kill-stale")
		assert.Equal(t, 0, next.Wait(), next.Stderr())
		assert.Contains(t, next.Stdout(), "== run 2: its containers are removed, 1 of them\n")
		last := p.start()
		assert.Equal(t, 0, last.Wait(), last.Stderr())
		e.nothingIsLeft(p)
	})
}

// Without an engine the job that starts such a pipeline fails, and says what to do.
func TestAPipelineThatIsMadeWithoutAnEngine(t *testing.T) {
	t.Parallel()
	p := newProject(t, "gen: {script: ['echo \"a: {image: tool, script: [x]}\" > c.yml'], stage: build, artifacts: {paths: [c.yml]}}\n"+
		"down: {trigger: {include: [{artifact: c.yml, job: gen}]}}\n")
	run := p.start("-engine", "false")
	assert.Equal(t, 1, run.Wait(), run.Stderr())
	assert.Contains(t, row(t, run.Stdout(), "down"), `downstream_pipeline_creation_failed: jobs with an image need a container engine ("down/a" runs in tool`)
	p.nothingIsLeft()
}

// The engine of such a pipeline hangs as it is looked for: a signal does not wait for it.
func TestTheEngineOfAPipelineThatIsMadeHangs(t *testing.T) {
	t.Parallel()
	p := newProject(t, "gen: {script: ['echo \"a: {image: tool, script: [x]}\" > c.yml'], stage: build, artifacts: {paths: [c.yml]}}\n"+
		"down: {trigger: {include: [{artifact: c.yml, job: gen}]}}\n")
	dir := t.TempDir()
	client := filepath.Join(dir, "client")
	program(t, client, "touch "+dir+"/asked\nexec sleep 1000\n")
	run := p.start("-engine", client)
	until(t, "the engine is looked for", func() bool { _, err := os.Stat(dir + "/asked"); return err == nil })
	run.Signal(syscall.SIGINT)
	assert.Equal(t, 130, run.Wait(), run.Stderr())
	assert.Contains(t, row(t, run.Stdout(), "down"), "canceled 1 ")
	p.nothingIsLeft()
}
