//go:build unix

package workdir

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// project returns a directory with files in it.
func project(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}

func open(t *testing.T, dir string) (*Run, []Stale) {
	t.Helper()
	r, stale, err := Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { runtime.KeepAlive(r) }) // a run that is collected gives its lock back
	return r, stale
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return string(data)
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=x", "-c", "user.email=x@example.com"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return strings.TrimSpace(string(out))
}

func TestACopyHonoursGitignoreAndIsARepository(t *testing.T) {
	dir := project(t, map[string]string{"a.txt": "old", "sub/b.txt": "b", ".gitignore": "junk\n", "junk": "x", "gone": "x", "new": "n"})
	git(t, dir, "init", "-q")
	git(t, dir, "add", "a.txt", "sub", ".gitignore", "gone")
	git(t, dir, "commit", "-qm", "first")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("changed"), 0o755))
	require.NoError(t, os.Remove(filepath.Join(dir, "gone")))
	require.NoError(t, os.Symlink("a.txt", filepath.Join(dir, "link")))

	r, _ := open(t, dir)
	notes, err := r.Snapshot(t.Context())
	require.NoError(t, err)
	assert.Empty(t, notes)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("while it runs"), 0o644))
	job, err := r.Checkout(t.Context(), "01-job")
	require.NoError(t, err)

	assert.Equal(t, "changed", read(t, job, "a.txt"), "as it was when the run began")
	assert.Equal(t, "b", read(t, job, "sub", "b.txt"))
	assert.Equal(t, "n", read(t, job, "new"))
	target, err := os.Readlink(filepath.Join(job, "link"))
	require.NoError(t, err)
	assert.Equal(t, "a.txt", target)
	assert.NoFileExists(t, filepath.Join(job, "junk"))
	assert.NoDirExists(t, filepath.Join(job, Name))
	assert.Equal(t, "M a.txt\n D gone\n?? link\n?? new", git(t, job, "status", "--short"))
	assert.Equal(t, git(t, dir, "rev-parse", "HEAD"), git(t, job, "rev-parse", "HEAD"))

	require.NoError(t, r.Close(false))
	assert.NoDirExists(t, job)
	assert.DirExists(t, r.Path("logs"))
	assert.NotContains(t, git(t, dir, "status", "--short"), Name)
}

// A repository whose index is in two files has them both copied.
func TestACopyOfARepositoryWithASplitIndex(t *testing.T) {
	dir := project(t, map[string]string{"a": "x", "b": "x"})
	git(t, dir, "init", "-q")
	git(t, dir, "add", "a")
	git(t, dir, "commit", "-qm", "first")
	git(t, dir, "update-index", "--split-index")
	git(t, dir, "add", "b")
	r, _ := open(t, dir)
	notes, err := r.Snapshot(t.Context())
	require.NoError(t, err)
	assert.Empty(t, notes)
	job, err := r.Checkout(t.Context(), "j")
	require.NoError(t, err)
	assert.Equal(t, "A  b", git(t, job, "status", "--short"))
	require.NoError(t, r.Close(false))
}

func TestAProjectThatIsNotThereIsNotMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	_, _, err := Open(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.NoDirExists(t, dir)
}

func TestACopyWithoutGit(t *testing.T) {
	dir := project(t, map[string]string{"a/b/c": "x"})
	require.NoError(t, os.Mkdir(filepath.Join(dir, "empty"), 0o755))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
	r, _ := open(t, dir)
	_, err := r.Snapshot(t.Context())
	require.NoError(t, err)
	job, err := r.Checkout(t.Context(), "j")
	require.NoError(t, err)
	assert.Equal(t, "x", read(t, job, "a/b/c"))
	assert.DirExists(t, filepath.Join(job, "empty"))
	require.NoError(t, os.WriteFile(filepath.Join(job, "left"), nil, 0o644))
	_, err = r.Checkout(t.Context(), "j")
	require.NoError(t, err)
	assert.NoFileExists(t, filepath.Join(job, "left"), "an earlier attempt has left it")
	require.NoError(t, r.Close(false))
}

func TestArtifactsGoFromJobToJob(t *testing.T) {
	dir := project(t, map[string]string{"src": "old"})
	r, _ := open(t, dir)
	_, err := r.Snapshot(t.Context())
	require.NoError(t, err)
	one, err := r.Checkout(t.Context(), "one")
	require.NoError(t, err)
	for name, text := range map[string]string{"out/bin/a": "a", "out/b.log": "b", "out/skip.tmp": "s", "src": "new", "x.txt": "x"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(one, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(one, name), []byte(text), 0o755))
	}
	n, missing, err := r.Collect(t.Context(), "one", []string{"out/", "**/*.txt", one + "/src", "nothing*"}, []string{"**/*.tmp"})
	require.NoError(t, err)
	assert.Equal(t, 4, n)
	assert.Equal(t, []string{"nothing*"}, missing)

	two, err := r.Checkout(t.Context(), "two")
	require.NoError(t, err)
	// A link where an artifact is to go is replaced, not written through.
	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.Symlink(outside, filepath.Join(two, "x.txt")))
	n, err = r.Restore(t.Context(), "one", "two")
	require.NoError(t, err)
	assert.Equal(t, 4, n)
	assert.Equal(t, "a", read(t, two, "out/bin/a"))
	assert.Equal(t, "new", read(t, two, "src"))
	assert.Equal(t, "x", read(t, two, "x.txt"))
	assert.NoFileExists(t, outside)
	assert.NoFileExists(t, filepath.Join(two, "out/skip.tmp"))

	// A file behind a link that leads out is nobody's artifact.
	require.NoError(t, os.Symlink(filepath.Dir(outside), filepath.Join(one, "lnk")))
	require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o644))
	n, missing, err = r.Collect(t.Context(), "one", []string{"lnk", "lnk/outside", one + "/x.txt"}, []string{one + "/*.txt"})
	require.NoError(t, err)
	assert.Equal(t, 1, n, "the link")
	assert.Equal(t, []string{"lnk/outside"}, missing)

	// A link that leads out is passed over, and a pipe is no file that could be copied.
	require.NoError(t, syscall.Mkfifo(filepath.Join(one, "pipe"), 0o600))
	elsewhere := []string{"../x", "/etc/passwd", "a/../../b", "["}
	n, missing, err = r.Collect(t.Context(), "one", append(elsewhere, "pipe"), nil)
	require.NoError(t, err)
	assert.Zero(t, n)
	assert.Equal(t, elsewhere, missing)
	require.NoError(t, r.Close(false))
}

// A pattern may be the directory of the job as a whole.
func TestAllOfAJobIsItsArtifact(t *testing.T) {
	dir := project(t, map[string]string{"a": "x", "d/b": "x"})
	r, _ := open(t, dir)
	_, err := r.Snapshot(t.Context())
	require.NoError(t, err)
	job, err := r.Checkout(t.Context(), "j")
	require.NoError(t, err)
	for _, all := range []string{".", job, job + "/", "./"} {
		n, missing, err := r.Collect(t.Context(), "j", []string{all}, []string{job + "/d/*"})
		require.NoError(t, err)
		assert.Empty(t, missing)
		assert.Equal(t, 1, n, all)
		assert.FileExists(t, r.Path("artifacts", "j", "a"))
	}
	require.NoError(t, r.Close(false))
}

func TestNothingIsWrittenThroughALinkToADirectory(t *testing.T) {
	from, to, outside := project(t, map[string]string{"d/f": "x"}), t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(outside, filepath.Join(to, "d")))
	assert.Error(t, copyFiles(t.Context(), from, to, []string{"d/f"}))
	assert.NoFileExists(t, filepath.Join(outside, "f"))
	from = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "f"), []byte("x"), 0o644))
	require.NoError(t, os.Symlink(outside, filepath.Join(from, "d")))
	assert.Error(t, copyFiles(t.Context(), from, t.TempDir(), []string{"d/f"}), "nor read")
}

// A project in a directory that the repository around it ignores has its files.
func TestACopyOfWhatGitIgnores(t *testing.T) {
	dir := project(t, map[string]string{".gitignore": "*\n", "sub/ci.yml": "x", "sub/.gitignore": ""})
	git(t, dir, "init", "-q")
	r, _ := open(t, filepath.Join(dir, "sub"))
	_, err := r.Snapshot(t.Context())
	require.NoError(t, err)
	job, err := r.Checkout(t.Context(), "j")
	require.NoError(t, err)
	assert.Equal(t, "x", read(t, job, "ci.yml"))
	require.NoError(t, r.Close(false))
}

// A repository that git does not want to read is told of.
func TestACopyOfARepositoryThatGitRefuses(t *testing.T) {
	dir := project(t, map[string]string{"a": "x"})
	git(t, dir, "init", "-q")
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".git", "config"), []byte("[broken"), 0o644))
	r, _ := open(t, dir)
	notes, err := r.Snapshot(t.Context())
	require.NoError(t, err)
	require.Len(t, notes, 1)
	assert.Contains(t, notes[0], "jobs get every file, also what git would ignore: git rev-parse")
	require.NoError(t, r.Close(false))
}

func TestRemoveAllOfAModuleCache(t *testing.T) {
	dir := project(t, map[string]string{"a/b/c": "x"})
	require.NoError(t, os.Chmod(filepath.Join(dir, "a/b"), 0o555))
	require.NoError(t, RemoveAll(filepath.Join(dir, "a")))
	assert.NoDirExists(t, filepath.Join(dir, "a"))
}

func TestRunsAreNumberedAndPruned(t *testing.T) {
	dir := project(t, nil)
	for want := 1; want <= 12; want++ {
		r, stale := open(t, dir)
		assert.Equal(t, want, r.ID)
		assert.Empty(t, stale)
		require.NoError(t, r.Close(false))
	}
	r, _ := open(t, dir)
	require.NoError(t, r.Prune(t.Context(), 3))
	ids, err := runs(filepath.Join(dir, Name))
	require.NoError(t, err)
	assert.Equal(t, []int{10, 11, 12, 13}, ids, "the one that lasts is kept")
	require.NoError(t, r.Close(false))
}

// A run that has lasted longer than those that began after it keeps its own files.
func TestALongRunIsNotPrunedByItself(t *testing.T) {
	dir := project(t, nil)
	long, _ := open(t, dir)
	for range 3 {
		short, _ := open(t, dir)
		require.NoError(t, short.Close(false))
	}
	require.NoError(t, long.Close(false))
	require.NoError(t, long.Prune(t.Context(), 1))
	ids, err := runs(filepath.Join(dir, Name))
	require.NoError(t, err)
	assert.Equal(t, []int{1, 4}, ids)
}

// A process that is just being started has all open files of this one, also those with locks.
func TestALockIsGoneWhenItIsGivenBack(t *testing.T) {
	r, _ := open(t, project(t, nil))
	taken, err := r.TryResource("one")
	require.NoError(t, err)
	none, err := r.TryResource("one")
	require.NoError(t, err)
	require.Nil(t, none)
	inherited, err := syscall.Dup(int(taken.(held).file.Fd()))
	require.NoError(t, err)
	defer func() { _ = syscall.Close(inherited) }()
	require.NoError(t, taken.Close())
	again, err := r.TryResource("one")
	require.NoError(t, err)
	require.NotNil(t, again)
	require.NoError(t, again.Close())
	require.NoError(t, r.Close(false))
}

// A process group that was recorded is reported, and ended on request, but not
// one whose processes are somebody else's.
func TestWhatAKilledRunHasLeft(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("needs /proc")
	}
	dir := project(t, nil)
	killed, _ := open(t, dir)
	start := func(env string) *exec.Cmd {
		cmd := exec.Command("sleep", "1000")
		cmd.Env = append(os.Environ(), env)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return cmd
	}
	ours, theirs := start(TokenVariable+"="+killed.Tokens("001-a")), start("X=Y")
	require.NoError(t, killed.Record(ours.Process.Pid, "job \"1\"\nx"))
	f, err := os.OpenFile(killed.Path("groups"), os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = fmt.Fprintf(f, "%d %s \"job 2\"\n%[1]d \"job 3\"\n", theirs.Process.Pid, birth(theirs.Process.Pid)+"0") // the number was free meanwhile
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, os.Mkdir(killed.Path("jobs", "01-job"), 0o755))

	_, none := open(t, dir)
	assert.Empty(t, none, "it lasts")
	require.NoError(t, killed.lock.Close()) // as the end of its process does
	_, stale := open(t, dir)
	require.Len(t, stale, 1)
	s := stale[0]
	assert.Equal(t, killed.ID, s.ID)
	assert.Equal(t, []string{"01-job"}, s.Jobs)
	assert.Equal(t, []Group{{ours.Process.Pid, "job \"1\"\nx"}}, s.Groups)

	require.NoError(t, s.Clear())
	assert.DirExists(t, killed.Path("jobs", "01-job"), "somebody works there")
	s.Kill()
	_ = ours.Wait()
	assert.NoError(t, theirs.Process.Signal(syscall.Signal(0)))
	require.NoError(t, s.Clear())
	assert.NoDirExists(t, killed.Path("jobs"))
	_, stale = open(t, dir)
	assert.Empty(t, stale, "it was reported once")
}

func TestACancelledCopyStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := copyFiles(ctx, project(t, map[string]string{"a": "x"}), t.TempDir(), []string{"a"})
	assert.ErrorIs(t, err, context.Canceled)
}
