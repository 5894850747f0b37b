package cli

import (
	"context"
	"os"
	"syscall"
)

// FailWritesToClosedPipes turns SIGPIPE into an error, until the scope of ctx
// ends. It is for programs that have something to put away: by default a write
// to a standard output that nobody reads any more ends the process where it
// stands. The write fails with syscall.EPIPE instead, and StatusPipe is the exit
// status that is expected then.
//
// The signal is not ignored, which the commands that are started would inherit.
func FailWritesToClosedPipes(ctx context.Context) {
	OnSignal(ctx, func(os.Signal) error { return nil }, syscall.SIGPIPE)
}

// StatusPipe is the exit status of what SIGPIPE has ended.
const StatusPipe = 128 + int(syscall.SIGPIPE)
