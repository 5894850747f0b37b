//go:build unix

package lockstest

import "syscall"

// pause stops a process for longer than its lease, and has it go on.
func (r *rowRun) pause(p *process) {
	_ = p.cmd.Process.Signal(syscall.SIGSTOP)
	r.wait(2)
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
}
