package main

import (
	"fmt"
	"io"
	"os"
	"sync"
)

// A journal is the log of a job, in a file: a server that has lost some of it can be
// given that again.
type journal struct {
	file  *os.File
	added func(n int) // told of every write; called without the lock

	mu   sync.Mutex
	size int64
}

func newJournal() (*journal, error) {
	f, err := os.CreateTemp("", "tracepatch-*.log")
	return &journal{file: f}, err
}

func (j *journal) close() {
	_ = j.file.Close()
	_ = os.Remove(j.file.Name())
}

// Write adds p. If the file cannot be written the job is stopped, with the error.
func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	n, err := j.file.WriteAt(p, j.size)
	j.size += int64(n)
	j.mu.Unlock()
	j.added(n)
	return n, err
}

// notef adds a line of our own, after one that may have no end.
func (j *journal) notef(format string, args ...any) {
	fmt.Fprintf(j, "\n[tracepatch: "+format+"]\n", args...)
}

func (j *journal) len() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.size
}

func (j *journal) section(offset, n int64) io.Reader { return io.NewSectionReader(j.file, offset, n) }
