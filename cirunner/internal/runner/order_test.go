//go:build unix

package runner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
)

// The output of a script to stdout and stderr is in the order in which it was written,
// in the log and on the screen, whatever watches the script: over many runs, because
// two pipes are in order by chance now and then.
func TestStdoutAndStderrStayInOrder(t *testing.T) {
	const script = "for i in {1..20}; do echo out $i; echo err $i >&2; done"
	var lines []string
	for i := 1; i <= 20; i++ {
		lines = append(lines, fmt.Sprintf("out %d", i), fmt.Sprintf("err %d", i))
	}
	all := strings.Join(lines, "\n") + "\n"
	var jobs []*pipeline.Job
	for i := range 40 {
		jobs = append(jobs, jobOf(fmt.Sprintf("script %d", i), script, func(j *pipeline.Job) {
			if i%2 == 1 {
				j.Watchdog.Silence = time.Hour
			}
			j.After = []string{script}
		}))
	}
	f := prepare(t, func(c *Config) { c.Concurrent = 4 }, jobs...)
	require.NoError(t, f.run())
	for _, j := range jobs {
		f.is(j.Name, plan.Succeeded, plan.None, "")
		log := f.log(j.Name)
		assert.Equal(t, 2, strings.Count(log, all), "%s: %s", j.Name, log)
		var shown strings.Builder
		for _, l := range f.seenLines {
			if text, ok := strings.CutPrefix(l, j.Name+": "); ok && (strings.HasPrefix(text, "out ") || strings.HasPrefix(text, "err ")) {
				shown.WriteString(text + "\n")
			}
		}
		assert.Equal(t, all+all, shown.String(), "on the screen")
	}
}
