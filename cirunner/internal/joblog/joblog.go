// Package joblog writes the log of a job: every byte of it to a file, up to a limit,
// and every line of it to whoever shows it, whole.
package joblog

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
)

// MaxLine is how long a line may be to be shown in one piece, in bytes. A longer line is shown
// in pieces of this length; in the file it is one line.
const MaxLine = 64 << 10

// A Kind says what a line is.
type Kind int

const (
	Output Kind = iota // of the job
	Beyond             // of the job, and not in the file, which is at its limit
	Own                // the runner's own
)

// A Log takes the output of a job, in any pieces, and writes it through: what
// Write has returned for is in the file. It holds back nothing but the beginning
// of a line, at most MaxLine of it, from those who are shown lines. Goroutines
// may share it.
type Log struct {
	mu      sync.Mutex
	file    io.WriteCloser
	line    func([]byte, Kind)
	limit   int64 // of what is written to the file, 0 for none
	written int64
	kind    Kind // of output: Beyond from the first byte on that is not in the file
	partial []byte
	midLine bool  // the file does not end in a newline
	err     error // the first of the file
}

// Create appends to a file, which it makes if there is none. At most limit bytes
// of output are kept there, if it is not 0. line, which may be nil, is called
// with each line, without its newline, one at a time; it must not keep it. A line in
// which the limit is reached comes as two.
func Create(path string, limit int64, line func(text []byte, kind Kind)) (*Log, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	return New(f, limit, line), nil
}

// New is Create for a file that is open.
func New(file io.WriteCloser, limit int64, line func(text []byte, kind Kind)) *Log {
	if line == nil {
		line = func([]byte, Kind) {}
	}
	return &Log{file: file, limit: limit, line: line}
}

// Write writes output. It fails if the file cannot take it, for good: a log with
// a hole in it is worse than none.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept, rest := l.shareLocked(p)
	l.rawLocked(kept)
	l.splitLocked(kept)
	if len(rest) > 0 && l.kind == Output {
		l.ownLocked(fmt.Appendf(nil, "cirunner: the log has reached its limit of %d bytes; the job goes on, its output is not kept", l.limit))
		l.kind = Beyond
	}
	if l.err != nil {
		return 0, l.err
	}
	l.splitLocked(rest)
	return len(p), nil
}

// Printf writes a line of the runner's own. It begins a new line if the output
// has not ended one, and it does not count for the limit.
func (l *Log) Printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ownLocked(fmt.Appendf(nil, format, args...))
}

// ownLocked writes and shows a line of the runner's own.
func (l *Log) ownLocked(text []byte) {
	text = bytes.TrimRight(text, "\n")
	l.flushLocked()
	if l.midLine {
		l.rawLocked([]byte{'\n'})
	}
	l.rawLocked(append(text[:len(text):len(text)], '\n'))
	l.line(text, Own)
}

// Err returns the first error of the file.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Flush shows the last line although it is not ended.
func (l *Log) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flushLocked()
}

// Close shows the last line, though it may not be ended, and closes the file. It
// returns the first error there was.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flushLocked()
	if err := l.file.Close(); l.err == nil {
		l.err = err
	}
	return l.err
}

// shareLocked splits output into what the limit allows to be kept, and the rest.
func (l *Log) shareLocked(p []byte) (kept, rest []byte) {
	kept = p
	if l.limit > 0 && l.written+int64(len(p)) > l.limit {
		kept = p[:max(l.limit-l.written, 0)]
	}
	l.written += int64(len(kept))
	return kept, p[len(kept):]
}

func (l *Log) rawLocked(p []byte) {
	if len(p) == 0 || l.err != nil {
		return
	}
	_, l.err = l.file.Write(p)
	l.midLine = p[len(p)-1] != '\n'
}

// splitLocked shows the lines that p ends, and keeps the beginning of the next.
func (l *Log) splitLocked(p []byte) {
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			end = len(p)
		}
		if room := MaxLine - len(l.partial); end > room {
			l.partial = append(l.partial, p[:room]...)
			l.flushLocked()
			p = p[room:]
			continue
		}
		if end == len(p) {
			l.partial = append(l.partial, p...)
			return
		}
		if len(l.partial) == 0 {
			l.line(p[:end], l.kind) // most lines need not be copied
		} else {
			l.partial = append(l.partial, p[:end]...)
			l.line(l.partial, l.kind)
			l.partial = l.partial[:0]
		}
		p = p[end+1:]
	}
}

func (l *Log) flushLocked() {
	if len(l.partial) > 0 {
		l.line(l.partial, l.kind)
		l.partial = l.partial[:0]
	}
}
