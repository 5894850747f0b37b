package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
)

// family is a pipeline whose job "down" starts another of two stages. "after" is in a later
// stage, "needs" needs down, "beside" is in the stage of down.
func family(depend bool, change ...func([]Job)) *Plan {
	jobs := []Job{
		{Name: "down", Stage: 1, Depend: depend},
		{Name: "down/a", Stage: 2, Parent: 1},
		{Name: "down/b", Stage: 3, Parent: 1},
		{Name: "beside", Stage: 1},
		{Name: "after", Stage: 4},
		{Name: "needs", Stage: 4, HasNeeds: true, Needs: []int{0}},
	}
	for i := range jobs {
		jobs[i].When = pipeline.OnSuccess
	}
	for _, c := range change {
		c(jobs)
	}
	p, _ := New(jobs)
	return p
}

func (p *Plan) play(job int, o Outcome) {
	p.Take(job)
	p.Ended(job, o)
}

func TestWhoWaitsForAChildPipeline(t *testing.T) {
	failed := Outcome{Cause: pipeline.ScriptFailure, ExitCode: 1}
	p := family(true)
	require.Equal(t, Waiting, p.State(1))
	p.play(0, Outcome{})
	require.Equal(t, Ready, p.State(1), "it does not wait for what is beside its parent")
	require.Equal(t, Waiting, p.State(5), "down is a trigger job with strategy: depend")
	p.play(1, Outcome{})
	p.play(3, Outcome{})
	require.Equal(t, Waiting, p.State(4))
	p.play(2, failed)
	require.Equal(t, []State{Skipped, Skipped}, []State{p.State(4), p.State(5)})

	p = family(false)
	p.play(0, Outcome{})
	require.Equal(t, []State{Ready, Ready}, []State{p.State(1), p.State(5)})
	p.play(3, Outcome{})
	require.Equal(t, Ready, p.State(4), "it waits for its own pipeline only")
	p.play(1, failed)
	require.Equal(t, []State{Ready, Skipped}, []State{p.State(4), p.State(2)})

	p = family(true, func(jobs []Job) { jobs[0].AllowFailure.All = true })
	p.play(0, Outcome{})
	p.play(1, failed)
	require.Equal(t, Ready, p.State(5), "what starts the pipeline may fail")
}

// A manual job of a child pipeline that may not fail holds up who waits for that.
func TestAManualJobOfAChildPipeline(t *testing.T) {
	manual := func(may bool) func([]Job) {
		return func(jobs []Job) { jobs[2].When, jobs[2].AllowFailure.All = pipeline.Manual, may }
	}
	for may, want := range map[bool]State{true: Ready, false: Blocked} {
		p := family(true, manual(may))
		p.play(0, Outcome{})
		p.play(1, Outcome{})
		p.play(3, Outcome{})
		require.Equal(t, []State{Manual, want, want}, []State{p.State(2), p.State(4), p.State(5)})
	}
}

// A pipeline that is not started has no job that runs, whatever its jobs say.
func TestAPipelineThatIsNotStarted(t *testing.T) {
	p := family(true, func(jobs []Job) { jobs[0].When, jobs[1].When = pipeline.Manual, pipeline.Always })
	require.Equal(t, []State{Manual, Skipped, Skipped}, []State{p.State(0), p.State(1), p.State(2)})
	p = family(true, func(jobs []Job) { jobs[0].When, jobs[1].When = pipeline.Delayed, pipeline.Always })
	require.Equal(t, []State{Delayed, Waiting}, []State{p.State(0), p.State(1)})
	p.Stop("signal")
	require.True(t, p.Done())
}

// A pipeline in a pipeline is waited for, too.
func TestChildrenOfChildren(t *testing.T) {
	jobs := []Job{
		{Name: "top", Depend: true}, {Name: "top/mid", Stage: 1, Parent: 1, Depend: true},
		{Name: "top/mid/low", Stage: 2, Parent: 2}, {Name: "after", Stage: 3},
	}
	for i := range jobs {
		jobs[i].When = pipeline.OnSuccess
	}
	p, _ := New(jobs)
	p.play(0, Outcome{})
	p.play(1, Outcome{})
	require.Equal(t, []State{Ready, Waiting}, []State{p.State(2), p.State(3)})
	p.play(2, Outcome{})
	require.Equal(t, Ready, p.State(3))
}
