//go:build unix

package runner

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/cirunner/internal/engine"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
)

// The client of a start is cut off: the engine may come to that yet, though there was nothing to remove at the end of the job.
func TestAStartThatIsCutOff(t *testing.T) {
	client := filepath.Join(t.TempDir(), "client")
	require.NoError(t, os.WriteFile(client, []byte("#!/bin/sh\ncase $1 in run) exec sleep 1000;; image) echo '{}';; esac\n"), 0o755))
	defer func(d time.Duration) { starting = d }(starting)
	starting = time.Millisecond
	f := prepare(t, func(c *Config) { c.Engine = &engine.Engine{Client: []string{client}} },
		jobOf("a", "true", func(j *pipeline.Job) { j.Image = &pipeline.Image{Name: "tool"} }))
	require.NoError(t, f.run())
	f.is("a", plan.Failed, pipeline.SystemFailure, "cannot start the container of the job")
	assert.True(t, f.Unswept() && f.CutOff())
}
