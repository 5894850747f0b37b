package proc

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/clitest"
)

// leader starts a command in a group of its own.
func leader(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	return cmd
}

func init() { helpers["renumbered"] = renumbered }

// renumbered gives the number of a group that has ended to another one, sends KILL
// to the former, and prints whether it got there and what has ended the stranger. It
// is the first process of a namespace for process ids, where nobody else takes them.
func renumbered() {
	group := &syscall.SysProcAttr{Setpgid: true}
	ours := exec.Command("true")
	ours.SysProcAttr = group
	must(ours.Start())
	g := groupOf(ours.Process)
	must(ours.Wait())
	_, ok := g.handle.send(0)

	var stranger *exec.Cmd
	for range 100 { // a thread of ours may have taken the number
		stranger = exec.Command("sleep", "600")
		stranger.SysProcAttr = group
		must(os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(g.id-1)), 0))
		must(stranger.Start())
		if stranger.Process.Pid == g.id {
			break
		}
		must(stranger.Process.Kill())
		_ = stranger.Wait()
	}
	ended := g.ended()
	g.signal(syscall.SIGKILL)
	must(stranger.Process.Signal(syscall.SIGTERM)) // the first that comes is what ends it
	_ = stranger.Wait()
	fmt.Printf("handles %v, same number %v, has ended %v, stranger: %v",
		ok, stranger.Process.Pid == g.id, ended, stranger.ProcessState.Sys().(syscall.WaitStatus).Signal())
}

// The number of a group that has ended may be another's. The stranger gets no signal.
func TestAStrangerWithTheNumberOfAGroupGetsNoSignal(t *testing.T) {
	cmd := exec.Command(helper(t, "renumbered"))
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWPID | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		t.Skip("process ids cannot be chosen here: ", err, string(out))
	case strings.HasPrefix(string(out), "handles false"):
		t.Skip("no handles of groups here: Linux 6.9 has them")
	}
	assert.Equal(t, "handles true, same number true, has ended true, stranger: terminated", string(out))
}

// The rest of a group is found by the handle when its first process has been
// waited for.
func TestAGroupIsSignalledWhenItsLeaderIsGone(t *testing.T) {
	for _, by := range []string{"handle", "number"} {
		ours := leader(t, "bash", "-c", "sleep 600 & exit 0")
		g := groupOf(ours.Process)
		require.NoError(t, ours.Wait())
		if by == "number" {
			g.forget()
			g.fd = -1
		}
		assert.False(t, g.ended())
		assert.Len(t, clitest.InGroup(t, g.id), 1)
		g.signal(syscall.SIGKILL)
		clitest.Eventually(t, "the end of the group", g.ended)
		g.forget()
	}
}
