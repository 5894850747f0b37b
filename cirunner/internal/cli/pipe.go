package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// sigpipe is SIGPIPE, for which package syscall has no name on js/wasm.
const sigpipe = syscall.Signal(13)

// StatusPipe is the exit status of what was stopped because nobody reads its
// output any more: that of what SIGPIPE has ended.
const StatusPipe = 128 + int(sigpipe)

// FailWritesToClosedPipes makes it an error to write to a standard output that
// nobody reads any more, syscall.EPIPE, for the rest of this process. It is for
// programs that have something to put away: by default such a write ends the
// process where it stands. It holds to the end, as the last words of a program
// are written when its scopes have ended.
//
// The signal is taken rather than ignored: commands would inherit that.
func FailWritesToClosedPipes() { signal.Notify(make(chan os.Signal, 1), sigpipe) }
