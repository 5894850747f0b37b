package proc

import (
	"fmt"
	"syscall"
)

// SignalName returns the name that people know a signal by.
//
//	proc.SignalName(syscall.SIGTERM) // SIGTERM
func SignalName(sig syscall.Signal) string {
	if name, ok := signalNames[sig]; ok {
		return name
	}
	return fmt.Sprintf("signal %d", int(sig))
}
