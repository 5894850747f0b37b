//go:build unix

package main

import (
	"fmt"
	"os"
	"syscall"
)

// writeCounter is what a resource does that checks tokens: it writes unless it has seen a
// greater one, in one step that nothing comes between. wrote is called within it.
func writeCounter(path string, token int64, value int, wrote func()) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	var seen int64
	var before int
	if _, err := fmt.Fscan(f, &seen, &before); err != nil {
		return err
	}
	if seen > token {
		return errRefused
	}
	if _, err := f.WriteAt(fmt.Appendf(nil, "%d %d\n", token, value), 0); err != nil {
		return err
	}
	wrote()
	return nil
}

func pauseProcess(p *os.Process) error  { return p.Signal(syscall.SIGSTOP) }
func resumeProcess(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
