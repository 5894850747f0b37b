//go:build unix

package service

import (
	"os"
	"os/signal"
	"syscall"
)

// ownPipes has a write to a broken standard output or error fail. Without, it ends the
// process, with all that there is to drain. The channel of the signals is not read.
func ownPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
