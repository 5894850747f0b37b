//go:build unix

package runner

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
)

// A full disk takes so many bytes.
type full struct {
	room atomic.Int64
	file io.WriteCloser
}

var errFull = errors.New("no space left on device")

func (f *full) Write(p []byte) (int, error) {
	if f.room.Add(int64(-len(p))) < 0 {
		return 0, errFull
	}
	return f.file.Write(p)
}

func (f *full) Close() error { return f.file.Close() }

func roomFor(n int64) func(string) (io.WriteCloser, error) {
	return func(path string) (io.WriteCloser, error) {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
		f := &full{file: file}
		f.room.Store(n)
		return f, err
	}
}

// The job would write for ever, and its after_script as well.
func TestALogThatCannotBeWrittenFailsTheJob(t *testing.T) {
	t.Parallel()
	f := prepare(t, func(c *Config) { c.OpenLog = roomFor(100_000) }, jobOf("a", "yes", func(j *pipeline.Job) {
		j.After = []string{"yes"}
		j.Retry = pipeline.Retry{Max: 1, When: []pipeline.Failure{pipeline.SystemFailure}}
	}))
	require.NoError(t, f.run())
	f.is("a", plan.Failed, pipeline.SystemFailure, "cannot write the log: no space left on device")
	assert.Equal(t, 2, f.job("a").Attempt)
}

// The script has succeeded, but of what it said something is lost.
func TestALogThatIsNotCompleteFailsTheJob(t *testing.T) {
	f := prepare(t, func(c *Config) { c.OpenLog = roomFor(20) }, jobOf("a", "true"))
	require.NoError(t, f.run())
	f.is("a", plan.Failed, pipeline.SystemFailure, "the log is not complete: no space left on device")
}

func TestALogThatCannotBeOpenedFailsTheJob(t *testing.T) {
	f := prepare(t, func(c *Config) { c.Logs = "/dev/null/nowhere" }, jobOf("a", "true"))
	require.NoError(t, f.run())
	f.is("a", plan.Failed, pipeline.SystemFailure, "cannot open the log")
}

func TestALogLimitDoesNotEndTheJob(t *testing.T) {
	f := prepare(t, func(c *Config) { c.LogLimit = 1000 }, jobOf("a", "for i in {1..500}; do echo line $i; done; echo end"))
	require.NoError(t, f.run())
	f.is("a", plan.Succeeded, plan.None, "")
	log := f.log("a")
	assert.Less(t, len(log), 1300)
	assert.Contains(t, log, "limit of 1000 bytes")
	assert.True(t, strings.HasSuffix(log, "cirunner: job succeeded\n"))
	assert.NotContains(t, f.seenLines, "a: end", "it is not shown either")
	assert.Less(t, len(f.seenLines), 150)
	last, of := f.Board.Tail(0)
	assert.Equal(t, "end", last[len(last)-1], "the end is known all the same")
	assert.Equal(t, 503, of, "502 commands and lines, and one line that the limit has cut in two")
}
