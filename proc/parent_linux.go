package proc

import "syscall"

// dieWithParent has the system send KILL when the thread that starts the command ends.
// The runtime ends no thread but one that a goroutine was locked to, so that is when this
// process ends.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
