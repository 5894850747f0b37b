//go:build !linux

package sqlitekv

import "os"

// waitForDisk returns when the content of a file is on the disk.
func waitForDisk(f *os.File) error { return f.Sync() }
