package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
)

// grows is a job that starts a pipeline, one that waits for both, and one beside it; it is Running.
func grows(depend bool) *Plan {
	p, _ := New([]Job{
		{Name: "down", When: pipeline.OnSuccess, Depend: depend},
		{Name: "after", Stage: 1, When: pipeline.OnSuccess},
		{Name: "bad", When: pipeline.OnSuccess},
	})
	p.Take(0)
	return p
}

var grown = []Job{
	{Name: "down/a", Parent: 1, When: pipeline.OnSuccess}, {Name: "down/b", Parent: 1, Stage: 1, When: pipeline.OnSuccess},
	{Name: "down/c", Parent: 1, Stage: 1, When: pipeline.Always},
}

// Jobs that come while their parent runs start when it has ended, and are waited for with it.
func TestAPlanGrows(t *testing.T) {
	p := grows(true)
	require.Empty(t, p.Add(grown))
	p.play(2, Outcome{})
	require.Equal(t, []State{Waiting, Waiting}, []State{p.State(1), p.State(3)})
	p.Ended(0, Outcome{})
	require.Equal(t, []State{Waiting, Ready, Waiting}, []State{p.State(1), p.State(3), p.State(4)})
	p.play(3, Outcome{})
	p.play(4, Outcome{})
	require.Equal(t, Waiting, p.State(1), "one of them has not ended")
	p.play(5, Outcome{})
	require.Equal(t, Ready, p.State(1))
	p.play(1, Outcome{})
	require.True(t, p.Done())
}

func TestAPlanThatIsStoppedGrows(t *testing.T) {
	p := grows(false)
	p.Stop("signal")
	changes := p.Add(grown)
	require.Len(t, changes, 3)
	require.Equal(t, Change{3, Canceled, "signal"}, changes[0])
	p.Ended(0, Outcome{Cause: Stopped})
	require.True(t, p.Done())

	p = grows(false)
	p.play(2, Outcome{Cause: pipeline.ScriptFailure, ExitCode: 1})
	p.GiveUp("bad failed")
	p.Add(grown)
	require.Equal(t, []State{Canceled, Canceled, Waiting}, []State{p.State(3), p.State(4), p.State(5)})
	p.Ended(0, Outcome{})
	require.Equal(t, Ready, p.State(5), "it runs always")

	p = grows(false)
	p.Add(grown)
	p.Ended(0, Outcome{Cause: pipeline.ScriptFailure, ExitCode: 1})
	require.Equal(t, []State{Skipped, Skipped, Skipped}, []State{p.State(3), p.State(4), p.State(5)})
}
