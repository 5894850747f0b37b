//go:build unix

package clitest_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/ambit-go/ambit/clitest"
)

// testMain is TestMain of such a package: what a test leaves running fails it.
func testMain(m *testing.M) { os.Exit(clitest.LeakChecked(m).Run()) }

// testDrain is a test of a server as its users run it: it is told to stop while a client sends to it, ends with 0 when all that it
// has accepted was answered, and leaves no process behind.
func testDrain(t *testing.T) {
	server := clitest.Start(t, nil, "server", "-addr", "127.0.0.1:0")
	server.WaitFor("listening on")
	client := clitest.Start(t, func(cmd *exec.Cmd) { cmd.Dir = t.TempDir() }, "client", "-n", "1000")
	client.WaitFor("sent")
	server.Signal(os.Interrupt)
	if status := server.Wait(); status != 0 {
		t.Errorf("exit status %d; stderr:\n%s", status, server.Stderr())
	}
	if status := client.Wait(); status != 0 {
		t.Errorf("not all were answered: %s", client.Stderr())
	}
	clitest.Eventually(t, "nothing is left of the server", func() bool { return len(clitest.InGroup(t, server.Pid())) == 0 })
}

// A program that has to drain when it is told to stop.
func Example() {
	_, _ = testMain, testDrain
}
