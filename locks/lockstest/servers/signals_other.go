//go:build !unix

package servers

import "os"

// Where there are no signals a server is ended the hard way, and pausing one does
// nothing.
var (
	terminate = os.Kill
	pause     = os.Interrupt
	resume    = os.Interrupt
)
