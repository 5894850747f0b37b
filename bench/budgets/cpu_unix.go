//go:build unix

package main

import (
	"syscall"
	"time"
)

// cpu returns how much processor time this process has had. A cost that grows is measured
// with it: a run that takes long gives way to other programs more often
// than a short one.
func cpu() time.Duration {
	var u syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
