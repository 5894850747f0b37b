//go:build !unix

package proc

import "syscall"

// signalNames is empty: no command is run here.
var signalNames map[syscall.Signal]string
