//go:build unix

package clitest_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/ambit-go/ambit/clitest"
)

// A program that is stopped by a signal ends with its status, and leaves nothing of its group.
func ExampleStart() {
	_ = func(t *testing.T) {
		p := clitest.Start(t, nil, "server", "-port", "0")
		p.WaitFor("serving")
		p.Signal(os.Interrupt)
		if status := p.Wait(); status != 130 {
			t.Errorf("exit status %d; stderr:\n%s", status, p.Stderr())
		}
	}
}

func ExampleLeakChecked() {
	_ = func(m *testing.M) { // TestMain
		os.Exit(clitest.LeakChecked(m).Run())
	}
}

func ExampleSignals() {
	_ = func(t *testing.T) {
		clitest.Signals(t, func(t *testing.T, sig syscall.Signal, status int) {
			p := clitest.Start(t, nil, "server", "-port", "0")
			p.WaitFor("serving")
			p.Signal(sig)
			if p.Wait() != status {
				t.Error(p.Stderr())
			}
		})
	}
}

// Nothing of the processes of a script is left, whoever has started them.
func ExampleInGroup() {
	_ = func(t *testing.T) {
		p := clitest.Start(t, nil, "runstep", "--", "bash", "-c", "echo pid $$; sleep 600")
		p.WaitFor("pid")
		group := clitest.Number(t, p.Stdout(), "pid")
		p.Signal(os.Interrupt)
		p.Wait()
		if left := clitest.InGroup(t, group); len(left) > 0 {
			t.Error("left:", left)
		}
	}
}

// A server that must be told its port.
func ExampleFreePort() {
	_ = func(t *testing.T) {
		port := clitest.FreePort(t)
		server := clitest.Start(t, nil, "server", "-port", port)
		server.WaitFor("serving")
	}
}

func ExampleNumber() {
	_ = func(t *testing.T) {
		p := clitest.Start(t, nil, "sh", "-c", "echo pid $$; sleep 600")
		p.WaitFor("pid")
		t.Log(clitest.Number(t, p.Stdout(), "pid"))
	}
}

func ExampleEventually() {
	_ = func(t *testing.T) {
		dir := t.TempDir()
		clitest.Start(t, nil, "touch", dir+"/done")
		clitest.Eventually(t, "the file is there", func() bool {
			_, err := os.Stat(dir + "/done")
			return err == nil
		})
	}
}

func ExampleAlive() {
	_ = func(t *testing.T) {
		p := clitest.Start(t, nil, "sleep", "600")
		t.Log(clitest.Alive(t, p.Pid(), os.Getpid()))
	}
}

func ExampleChildren() {
	_ = func(t *testing.T) {
		t.Cleanup(func() {
			if left := clitest.Children(t); len(left) > 0 {
				t.Error("not waited for:", left)
			}
		})
	}
}

// A program's own commands stand beside exits.
func ExampleCommands() {
	type testScript = clitest.Script // *testscript.TestScript
	commands := clitest.Commands[testScript]()
	commands["freeze"] = func(ts testScript, _ bool, args []string) {
		if err := ts.Exec("kill", "-STOP", args[0]); err != nil {
			ts.Fatalf("%v", err)
		}
	}
}

func ExampleSetup() {
	type env = interface{ Setenv(key, value string) } // *testscript.Env
	var setup func(env) error = clitest.Setup[env]
	_ = setup
}
