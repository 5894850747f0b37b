package report

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/board"
)

// How much of a log is in a report, in bytes: of a failed job, and of another.
const (
	longTail  = 256 << 10
	shortTail = 32 << 10
)

// A logTail is the end of a log, as plain text.
type logTail struct {
	Text string
	Note string // what is missing, or why there is nothing
}

// readTail reads the end of a log, whole lines of it.
func readTail(path string, most int64) logTail {
	if path == "" {
		return logTail{}
	}
	f, err := os.Open(path)
	if err != nil {
		return logTail{Note: err.Error()}
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return logTail{Note: path + " is no file"}
	}
	from := max(info.Size()-most, 0)
	data, err := io.ReadAll(io.NewSectionReader(f, from, most))
	if err != nil {
		return logTail{Note: err.Error()}
	}
	t := logTail{}
	if from > 0 {
		if end := bytes.IndexByte(data, '\n'); end >= 0 {
			from, data = from+int64(end)+1, data[end+1:]
		}
		t.Note = fmt.Sprintf("The first %d of %d bytes are left out; all is in %s.", from, info.Size(), path)
	}
	var b strings.Builder
	for line := range bytes.Lines(data) {
		b.WriteString(board.Clean(line) + "\n")
	}
	t.Text = b.String()
	return t
}
