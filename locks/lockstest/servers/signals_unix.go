//go:build unix

package servers

import "syscall"

const (
	terminate = syscall.SIGTERM
	pause     = syscall.SIGSTOP
	resume    = syscall.SIGCONT
)
