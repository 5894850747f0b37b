//go:build unix

package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
)

// Each job makes a directory that there must not be, and takes it away.
func TestJobsOfAResourceGroupDoNotRunAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	alone := func(name, group string) *pipeline.Job {
		return jobOf(name, fmt.Sprintf("mkdir %s/%s && sleep 0.2 && rmdir %[1]s/%[2]s", dir, "held"), func(j *pipeline.Job) {
			j.ResourceGroup = group
			j.Variables = []pipeline.Variable{{Name: "WHERE", Value: "prod"}}
		})
	}
	f := prepare(t, func(c *Config) { c.Concurrent = 4 },
		alone("a", "deploy-prod"), alone("b", "deploy-$WHERE"), alone("c", "deploy-prod"), alone("d", "deploy-prod"))
	require.NoError(t, f.run())
	for _, name := range []string{"a", "b", "c", "d"} {
		f.is(name, plan.Succeeded, plan.None, "")
	}
}

// Another run of the project has the group: the job waits, and a cancel ends that.
func TestAResourceGroupIsThatOfAllRuns(t *testing.T) {
	deploy := func(j *pipeline.Job) { j.ResourceGroup = "prod" }
	f := prepare(t, nil, jobOf("a", "true", deploy), jobOf("b", "echo b"))
	other, err := f.Work.TryResource("prod")
	require.NoError(t, err)
	f.when("b", "b", func() { assert.NoError(t, other.Close()) })
	require.NoError(t, f.run())
	f.is("a", plan.Succeeded, plan.None, "")

	f = prepare(t, nil, jobOf("a", "true", deploy))
	other, err = f.Work.TryResource("prod")
	require.NoError(t, err)
	defer func() { _ = other.Close() }()
	require.NoError(t, f.run(func(ctx context.Context) {
		async.Go(ctx, func(ctx context.Context) error {
			_, err := async.Poll(ctx, async.Every(time.Millisecond), func(context.Context) (bool, bool, error) {
				return true, f.job("a").Phase == "resource_group prod", nil
			}).Await(ctx, 0)
			f.Cancel(ctx, errors.New("enough"))
			return err
		})
	}))
	f.is("a", plan.Canceled, plan.Stopped, "enough")
}

// Nothing starts after a failure: neither what waits for a worker nor what waits for another
// job.
func TestFailFastStartsNothingMore(t *testing.T) {
	t.Parallel()
	f := prepare(t, func(c *Config) { c.FailFast, c.Concurrent = true, 2 },
		jobOf("fails", "until test -e $SIGNAL.up; do sleep 0.01; done; exit 1"),
		jobOf("goes on", "touch $SIGNAL.up; while test -e $SIGNAL; do sleep 0.01; done; echo on"),
		jobOf("queued", "echo never"),
		jobOf("waits", "echo never", after("goes on")),
		jobOf("alarm", "rm $SIGNAL", after("fails"), func(j *pipeline.Job) { j.When = pipeline.OnFailure }),
	)
	path := t.TempDir() + "/signal"
	require.NoError(t, os.WriteFile(path, nil, 0o644))
	for _, j := range f.Pipeline.Jobs {
		j.Variables = []pipeline.Variable{{Name: "SIGNAL", Value: path}}
	}
	require.NoError(t, f.run())
	f.is("goes on", plan.Succeeded, plan.None, "")
	f.is("alarm", plan.Succeeded, plan.None, "")
	f.is("queued", plan.Canceled, plan.None, `given up: "fails" failed`)
	f.is("waits", plan.Canceled, plan.None, `given up: "fails" failed`)
}

// A trigger job with strategy: depend keeps its group until its pipeline is over, from this run and from others; a job in it may
// have the same.
func TestAResourceGroupIsThatOfAPipeline(t *testing.T) {
	t.Parallel()
	live := func(j *pipeline.Job) { j.ResourceGroup = "live" }
	down := jobOf("down", "true", live, func(j *pipeline.Job) { j.Depend = true })
	child := func(j *pipeline.Job) { j.Parent = down }
	f := prepare(t, func(c *Config) { c.Concurrent = 3 }, down, jobOf("down/in", "echo in", child), jobOf("down/also", "echo also", child, live),
		jobOf("other", "echo other", live))
	var order []string
	f.when("down/in", "in", func() {
		order = append(order, "in")
		held, err := f.Work.TryResource("live")
		assert.NoError(t, err)
		assert.Nil(t, held, "it is this run's")
	})
	f.when("other", "other", func() { order = append(order, "other") })
	require.NoError(t, f.run())
	assert.Equal(t, []string{"in", "other"}, order)
	held, err := f.Work.TryResource("live")
	require.NoError(t, err)
	require.NotNil(t, held, "it is nobody's")
	require.NoError(t, held.Close())
}

// A delayed job is due while another has its resource_group, and that is given back before the turn of the delayed job
// has ended: the job has another turn.
func TestAGroupIsGivenBackAsADelayedJobIsDue(t *testing.T) {
	group := func(j *pipeline.Job) { j.ResourceGroup = "prod" }
	f := prepare(t, nil, jobOf("holder", "true", group),
		jobOf("late", "true", group, func(j *pipeline.Job) { j.When, j.StartIn = pipeline.Delayed, time.Hour }))
	synctest.Test(t, func(t *testing.T) {
		f.hard = t.Context()
		f.soft, f.stop = context.WithCancelCause(f.hard)
		defer f.stop(nil)
		f.turns = newTurns() // of the bubble
		f.begin()
		var holder *attempt
		require.NoError(t, f.turns.Consume(t.Context(), 1, 1, func(_ context.Context, turns []turn) error {
			a := f.start(turns[0].job)
			switch {
			case holder == nil:
				holder = a
			case a == nil:
				f.end(holder, plan.Outcome{})
			default:
				f.end(a, plan.Outcome{})
			}
			return nil
		}))
	})
	f.is("late", plan.Succeeded, "", "")
}
