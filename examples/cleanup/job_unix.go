//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// group gives cmd a process group of its own, which is told to stop as a whole.
// The function that it returns kills what is left of the group.
func group(cmd *exec.Cmd) (kill func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	return func() {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // usually there is nobody
		}
	}
}
