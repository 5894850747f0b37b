package servers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// folder makes a temporary folder for a server that refuses to run as root: then it
// runs as a user of its own, who owns the folder.
func folder(t testing.TB, user string) (dir string, as *syscall.SysProcAttr) {
	t.Helper()
	dir, err := os.MkdirTemp("", "locks-"+user+"-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if os.Geteuid() != 0 {
		return dir, nil
	}
	as, uid, gid, err := runAs(user)
	if err == nil {
		err = os.Chown(dir, uid, gid)
	}
	if err != nil {
		Missing(t, fmt.Sprintf("%s cannot be started as root: %v", user, err))
	}
	return dir, as
}

func command(as *syscall.SysProcAttr, path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.SysProcAttr = os.TempDir(), as // the server's user may not be in the folder of the test
	return cmd
}

// run runs a program to its end.
func run(t testing.TB, as *syscall.SysProcAttr, path string, args ...string) {
	t.Helper()
	if out, err := command(as, path, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(path), err, out)
	}
}
