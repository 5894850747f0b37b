//go:build windows || plan9 || solaris || aix || android || js || wasip1

package boltfile

import "os"

// Unlock does nothing: the end of the program gives the lock back.
func Unlock(*os.File) {}

// SyncFolder does nothing: these systems do not let a program sync a folder.
func SyncFolder(string) error { return nil }
