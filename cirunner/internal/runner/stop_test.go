//go:build unix

package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
)

func TestADelayedJobDoesNotHoldUpAStop(t *testing.T) {
	f := prepare(t, nil, jobOf("late", "true", func(j *pipeline.Job) {
		j.When, j.StartIn = pipeline.Delayed, time.Hour
	}))
	require.NoError(t, f.run(func(ctx context.Context) { f.Cancel(ctx, errors.New("enough")) }))
	f.is("late", plan.Canceled, plan.None, "enough")
}

func TestFailFastGivesUpInterruptibleJobs(t *testing.T) {
	t.Parallel()
	f := prepare(t, func(c *Config) { c.FailFast, c.Concurrent = true, 3 },
		jobOf("given up", "echo ready; touch $SIGNAL; sleep 1000"),
		jobOf("goes on", "while test -e $SIGNAL; do sleep 0.01; done; echo on"),
		jobOf("fails", "while ! test -e $SIGNAL; do sleep 0.01; done; exit 1"),
		jobOf("cleans up", "rm $SIGNAL", after("given up"), func(j *pipeline.Job) { j.When = pipeline.Always }),
	)
	path := filepath.Join(t.TempDir(), "signal")
	for _, j := range f.Pipeline.Jobs {
		j.Variables = []pipeline.Variable{{Name: "SIGNAL", Value: path}}
	}
	f.Pipeline.Jobs[0].Interruptible = true
	require.NoError(t, os.WriteFile(path+"x", nil, 0o644))
	require.NoError(t, f.run())
	f.is("given up", plan.Canceled, plan.Stopped, `given up: "fails" failed`)
	f.is("fails", plan.Failed, pipeline.ScriptFailure, "exit status 1")
	f.is("cleans up", plan.Succeeded, plan.None, "")
}

func TestCancelLetsAfterScriptsRun(t *testing.T) {
	f := prepare(t, nil,
		jobOf("a", "echo up; sleep 1000", func(j *pipeline.Job) { j.After = []string{"echo after $CI_JOB_STATUS"} }),
		jobOf("b", "true", after("a")))
	require.NoError(t, f.run(func(ctx context.Context) {
		f.when("a", "up", func() { f.Cancel(ctx, errors.New("enough")) })
	}))
	f.is("a", plan.Canceled, plan.Stopped, "enough")
	f.is("b", plan.Canceled, plan.None, "enough")
	assert.Contains(t, f.log("a"), "after canceled\n")
}

// Neither the grace nor an after_script keeps an abort from ending the run: both
// would take longer than the test may.
func TestAbortKillsAtOnce(t *testing.T) {
	stubborn := func(j *pipeline.Job) {
		j.Watchdog.Grace = time.Hour
		j.After = []string{"echo after"}
	}
	inAfter := func(j *pipeline.Job) { j.After = []string{"trap '' TERM; echo after; sleep 1000; sleep 1000"} }
	for _, tt := range []struct {
		name, line string
		job        *pipeline.Job
	}{
		{"a script", "up", jobOf("a", "trap '' TERM; echo up; sleep 1000; sleep 1000", stubborn)},
		{"an after_script", "after", jobOf("a", "true", stubborn, inAfter)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := prepare(t, nil, tt.job, jobOf("next", "true", after("a")))
			aborted := errors.New("at once")
			err := f.run(func(ctx context.Context) {
				f.when("a", tt.line, func() { async.Go(ctx, func(context.Context) error { return aborted }) })
			})
			require.ErrorIs(t, err, aborted)
			f.is("a", plan.Canceled, plan.Stopped, "aborted: at once")
			f.is("next", plan.Canceled, plan.None, "aborted: at once") // not skipped because of a
			if tt.line == "up" {
				assert.NotContains(t, f.log("a"), "after\n")
			}
		})
	}
}

func TestDrainLetsRunningJobsEnd(t *testing.T) {
	f := prepare(t, func(c *Config) { c.Concurrent = 1 }, jobOf("a", "echo up; read < $FIFO; echo done", func(j *pipeline.Job) {
		j.Retry.Max = 2
	}), jobOf("b", "true"))
	path := filepath.Join(t.TempDir(), "go")
	f.Pipeline.Jobs[0].Script = []string{fmt.Sprintf("echo up; until test -e %s; do sleep 0.01; done; exit 1", path)}
	require.NoError(t, f.run(func(ctx context.Context) {
		f.when("a", "up", func() {
			f.Drain(ctx, "drained")
			async.Go(ctx, func(ctx context.Context) error {
				_, err := async.Poll(ctx, async.Every(time.Millisecond), func(context.Context) (bool, bool, error) {
					return true, f.job("b").State == plan.Canceled, nil
				}).Await(ctx, 0)
				return errors.Join(err, os.WriteFile(path, nil, 0o644))
			})
		})
	}))
	f.is("a", plan.Failed, pipeline.ScriptFailure, "exit status 1")
	assert.Equal(t, 1, f.job("a").Attempt, "no retry")
	f.is("b", plan.Canceled, plan.None, "drained")
}

// A run whose context has ended before it began has nothing to do, and says so.
func TestARunThatIsAbortedAtItsBeginning(t *testing.T) {
	f := prepare(t, nil, jobOf("a", "true"))
	ctx, cancel := context.WithCancelCause(t.Context())
	early := errors.New("too early")
	cancel(early)
	require.ErrorIs(t, f.Run(ctx, func(context.Context) {}), early)
	f.is("a", plan.Canceled, plan.None, "too early")
}
