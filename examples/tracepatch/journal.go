//go:build unix

package main

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"os"
	"sync"
)

// A journal is the log of a job, in a file: a server that is slow, or away,
// holds up neither the job nor the memory, and one that has lost something can
// be given it again.
type journal struct {
	file  *os.File
	limit int64       // how long it may become
	added func(n int) // told of every write; called without the lock
	mu    sync.Mutex  // held for every write
	size  int64       // bytes written
	sum   hash.Hash   // of them
	full  bool        // the limit was reached; nothing is written any more
	open  bool        // the last line has no newline
	err   error       // of the file; nothing is written any more
}

// newJournal returns an empty journal. Its file has no name, so nothing is left
// of it, however the program ends.
func newJournal(limit int64) (*journal, error) {
	f, err := os.CreateTemp("", "tracepatch-*.log")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close()
		return nil, err
	}
	return &journal{file: f, limit: limit, sum: sha256.New()}, nil
}

// Write adds p, up to the limit. It does not fail: a job is not stopped because
// its log is too long or cannot be kept. Err tells of the latter.
func (j *journal) Write(p []byte) (int, error) {
	j.added(j.write(p))
	return len(p), nil
}

func (j *journal) write(p []byte) (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.full || j.err != nil || len(p) == 0 {
		return 0
	}
	if room := j.limit - j.size; int64(len(p)) > room {
		j.full = true
		p = fmt.Appendf(p[:room:room], "\n[the log has reached %d bytes; the rest is left out]\n", j.limit)
	}
	n, j.err = j.file.WriteAt(p, j.size)
	j.sum.Write(p[:n])
	j.size += int64(n)
	j.open = n > 0 && p[n-1] != '\n'
	return n
}

// notef adds a line of our own.
func (j *journal) notef(format string, args ...any) {
	j.mu.Lock()
	open := j.open
	j.mu.Unlock()
	if open {
		format = "\n[tracepatch: " + format + "]\n"
	} else {
		format = "[tracepatch: " + format + "]\n"
	}
	fmt.Fprintf(j, format, args...)
}

// Size returns how many bytes there are to read.
func (j *journal) Size() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.size
}

// Sum returns the size and the SHA-256 of the journal.
func (j *journal) Sum() (size int64, sum string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.size, fmt.Sprintf("sha256:%x", j.sum.Sum(nil))
}

// Err returns what has kept the journal from being written.
func (j *journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// section returns n bytes from an offset on.
func (j *journal) section(offset, n int64) *io.SectionReader {
	return io.NewSectionReader(j.file, offset, n)
}
