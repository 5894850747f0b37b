//go:build unix

package view

import (
	"os"
	"syscall"
)

// tell has an event come.
func (e *events) tell(what event) {
	if e.signals == nil {
		e.signals = make(chan os.Signal, 8)
	}
	e.signals <- map[event]syscall.Signal{resized: syscall.SIGWINCH, suspended: syscall.SIGTSTP, resumed: syscall.SIGCONT}[what]
}
