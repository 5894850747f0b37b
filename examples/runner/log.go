//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/ambit-go/ambit/proc"
)

// tailLines is how many lines of a job that has failed are shown.
const tailLines = 10

// A jobLog is the log of a job: a file with all of it, and the last lines in memory, however much that is.
type jobLog struct {
	mu    sync.Mutex
	file  *os.File
	lines *proc.LineWriter
	last  []string
}

// openLog makes the log of a job.
func (r *runner) openLog(job string) (*jobLog, error) {
	dir, err := r.dir("logs", "")
	if err != nil {
		return nil, err
	}
	file, err := os.Create(filepath.Join(dir, job+".log"))
	if err != nil {
		return nil, err
	}
	l := &jobLog{file: file}
	l.lines = proc.Lines(func(line string) {
		l.last = append(l.last, line)
		l.last = l.last[max(0, len(l.last)-tailLines):]
	})
	return l, nil
}

// Write takes output of a script. An error, of a disk that is full, ends the script.
func (l *jobLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.lines.Write(p)
	return l.file.Write(p)
}

// section begins a section, as the pages of CI servers fold them.
func (l *jobLog) section(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.lines.Close() // the tail has what the scripts say, not the headings
	fmt.Fprintf(l.file, "== %s\n", name)
}

// note writes a word of the runner's own.
func (l *jobLog) note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.file, "[runner: "+format+"]\n", args...)
}

// tail returns the last lines, and the one that has not ended.
func (l *jobLog) tail() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.lines.Close() // a line that has not ended counts, too
	for i, line := range l.last {
		l.last[i] = strings.ToValidUTF8(line, "?")
	}
	return l.last
}

func (l *jobLog) close() { _ = l.file.Close() }
