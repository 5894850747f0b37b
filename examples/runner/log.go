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
	torn  bool // the last line in the file has no end
}

// openLog makes the log of a job.
func (r *runner) openLog(job string) (*jobLog, error) {
	dir := filepath.Join(r.out, "logs")
	if err := os.MkdirAll(dir, 0o755); err != nil {
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
	l.torn = len(p) > 0 && p[len(p)-1] != '\n'
	return l.file.Write(p)
}

// section begins a section, as the pages of CI servers fold them.
func (l *jobLog) section(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.lines.Close() // the tail has what the scripts say, not the headings
	l.line("== " + name)
}

// note writes a word of the runner's own.
func (l *jobLog) note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line(fmt.Sprintf("[runner: "+format+"]", args...))
}

// line writes a line of the runner's own to the file.
func (l *jobLog) line(text string) {
	if l.torn {
		text = "\n" + text
	}
	l.torn = false
	fmt.Fprintln(l.file, text)
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
