package workdir

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/clitest"
)

// zombie reports whether a child is dead, and was not waited for.
func zombie(pid int) bool {
	s, ok := readStat(pid)
	return ok && s.state == 'Z'
}

// The dead that were adopted are waited for; those that we have started are left to who waits for them.
func TestTheAdoptedDeadAreBuried(t *testing.T) {
	require.NoError(t, Adopt())
	own := exec.Command("true")
	require.NoError(t, own.Start())
	out, err := exec.Command("sh", "-c", "sleep 0.01 > /dev/null 2>&1 & echo $!").Output()
	require.NoError(t, err)
	adopted, err := strconv.Atoi(strings.TrimSpace(string(out)))
	require.NoError(t, err)
	clitest.Eventually(t, "both are dead", func() bool { return zombie(own.Process.Pid) && zombie(adopted) })

	var g graveyard
	begin := time.Now()
	g.bury(begin)
	assert.True(t, zombie(adopted), "it may be somebody's still")
	g.bury(begin.Add(longDead - 1))
	assert.True(t, zombie(adopted))
	g.seen[own.Process.Pid] = begin.Add(time.Second) // which has died later
	g.bury(begin.Add(longDead))
	assert.False(t, slices.Contains(children(), adopted))
	assert.NoError(t, own.Wait())
	g.bury(begin.Add(longDead))
	assert.NotContains(t, g.seen, own.Process.Pid)
}

// A dead child in a group of others was adopted: nobody waits for it, and it goes at once.
func TestTheDeadOfAGroupAreBuriedAtOnce(t *testing.T) {
	require.NoError(t, Adopt())
	script := exec.Command("sh", "-c", "sleep 0.01 > /dev/null 2>&1 & echo $!")
	script.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := script.Output()
	require.NoError(t, err)
	adopted, err := strconv.Atoi(strings.TrimSpace(string(out)))
	require.NoError(t, err)
	clitest.Eventually(t, "it is dead", func() bool { return zombie(adopted) })
	var g graveyard
	g.bury(time.Now())
	assert.NotContains(t, children(), adopted)
}

// A stray is known by where it works: not that of another job whose name begins so.
func TestAStrayIsThatOfItsJob(t *testing.T) {
	require.NoError(t, Adopt())
	dir := t.TempDir()
	job := filepath.Join(dir, "001-a")
	require.NoError(t, exec.Command("mkdir", "-p", job+"/deep", dir+"/001-ab").Run())
	cmd := exec.Command("sh", "-c", "env -i setsid sleep 1000 > /dev/null 2>&1 & echo $!")
	cmd.Dir = job + "/deep"
	out, err := cmd.Output()
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	require.NoError(t, err)
	clitest.Eventually(t, "it is ours", func() bool { return hasToken(pid, job) })
	assert.False(t, hasToken(pid, filepath.Join(dir, "001-ab")))
	assert.False(t, hasToken(pid, filepath.Join(dir, "001")))
	assert.True(t, hasToken(pid, dir+"/"), "one of all jobs of a run")
	assert.Equal(t, 1, killCarriers(job))
	clitest.Eventually(t, "it is dead", func() bool { return zombie(pid) })
}

// A project that is reached by a link has its strays found: the system tells where they work without that.
func TestAStrayOfAProjectBehindALink(t *testing.T) {
	require.NoError(t, Adopt())
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(project(t, nil), link))
	r, _ := open(t, link)
	require.NoError(t, os.Mkdir(r.JobDir("001-a"), 0o755))
	cmd := exec.Command("sh", "-c", "env -i setsid sleep 1000 > /dev/null 2>&1 & echo $!")
	cmd.Dir = r.JobDir("001-a")
	out, err := cmd.Output()
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	clitest.Eventually(t, "it has left the group of the test", func() bool { s, _ := readStat(pid); return s.group == pid })
	assert.Equal(t, 1, r.Reap(t.Context(), "001-a", 0))
	require.NoError(t, r.Close(false))
}
