//go:build !linux

package sqlitekv

import "os"

func waitForDisk(f *os.File) error { return f.Sync() }
