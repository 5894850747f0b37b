package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
)

// states returns the states of all jobs, in words.
func states(p *Plan) (all []string) {
	for i := range p.jobs {
		all = append(all, p.State(i).String())
	}
	return all
}

// Jobs of a resource group run one at a time; a retry keeps its place, and so does a job that
// was delayed.
func TestJobsOfAResourceGroupTakeTurns(t *testing.T) {
	p, changes := begin([]Job{
		{Name: "a", Group: "prod", Retry: pipeline.Retry{Max: 1}},
		{Name: "b", Group: "prod"},
		{Name: "other", Group: "staging"},
		{Name: "late", Group: "prod", When: pipeline.Delayed},
	})
	assert.Contains(t, changes, Change{1, Locked, `waits for "a", which has the same resource_group`})
	assert.Equal(t, []string{"ready", "locked", "ready", "delayed"}, states(p.Plan))
	p.Due(3)
	assert.Equal(t, []string{"ready", "locked", "ready", "locked"}, states(p.Plan))
	p.Take(0)
	p.Ended(0, bad)
	assert.Equal(t, []string{"ready", "locked", "ready", "locked"}, states(p.Plan), "it is tried again first")
	p.Take(0)
	p.Ended(0, bad)
	assert.Equal(t, []string{"failed", "ready", "ready", "locked"}, states(p.Plan))
	p.Stop("enough")
	assert.Equal(t, []string{"failed", "canceled", "canceled", "canceled"}, states(p.Plan))
}

// Once a job has failed nothing starts any more but what is for after a failure, and
// nothing is tried again.
func TestGiveUp(t *testing.T) {
	p, _ := begin([]Job{
		{Name: "fails"},
		{Name: "runs", Retry: pipeline.Retry{Max: 2}},
		{Name: "ready"},
		{Name: "late", When: pipeline.Delayed},
		{Name: "next", Stage: 1},
		{Name: "alarm", Stage: 1, When: pipeline.OnFailure, Retry: pipeline.Retry{Max: 1}},
		{Name: "tidy", Stage: 1, When: pipeline.Always},
	})
	p.Take(0)
	p.Take(1)
	p.Ended(0, bad)
	changes := p.GiveUp("no use")
	assert.Contains(t, changes, Change{2, Canceled, "no use"})
	assert.Equal(t, []string{"failed", "running", "canceled", "canceled", "canceled", "waiting", "waiting"}, states(p.Plan))
	require.Empty(t, p.GiveUp("again"))
	p.Ended(1, bad)
	assert.Equal(t, []string{"failed", "failed", "canceled", "canceled", "canceled", "ready", "ready"}, states(p.Plan))
	p.Take(5)
	p.Ended(5, bad)
	assert.Equal(t, "ready", p.State(5).String(), "what is for after a failure is tried again")
}

// When nothing runs any more, what is for after a failure does not wait for what was given up.
func TestGiveUpWhileNothingRuns(t *testing.T) {
	p, _ := begin([]Job{{Name: "fails"}, {Name: "ready"}, {Name: "alarm", Stage: 1, When: pipeline.OnFailure}})
	p.Take(0)
	p.Ended(0, bad)
	p.GiveUp("no use")
	assert.Equal(t, []string{"failed", "canceled", "ready"}, states(p.Plan))
}

// A trigger job with strategy: depend has its group until its pipeline is over; a job in it that has the same
// group runs all the same, one at a time.
func TestAGroupOfAPipeline(t *testing.T) {
	jobs := []Job{
		{Name: "down", Group: "live", Depend: true}, {Name: "down/a", Parent: 1, Group: "live"}, {Name: "down/b", Parent: 1, Group: "live"},
		{Name: "other", Group: "live"}, {Name: "down/c", Parent: 1, Stage: 1},
	}
	for i := range jobs {
		jobs[i].When = pipeline.OnSuccess
	}
	p, _ := New(jobs)
	require.Equal(t, []State{Ready, Locked}, []State{p.State(0), p.State(3)})
	p.play(0, Outcome{})
	require.Equal(t, []State{Ready, Locked, Locked}, []State{p.State(1), p.State(2), p.State(3)})
	p.play(1, Outcome{})
	require.Equal(t, []State{Ready, Locked}, []State{p.State(2), p.State(3)})
	p.play(2, Outcome{})
	require.Equal(t, Locked, p.State(3), "the pipeline is not over")
	require.False(t, p.Over(0))
	p.play(4, Outcome{})
	require.Equal(t, Ready, p.State(3))
	require.True(t, p.Over(0))

	jobs[0].Depend, jobs[1].Group, jobs[2].Group = false, "", ""
	p, _ = New(jobs)
	p.play(0, Outcome{})
	require.NotEqual(t, Locked, p.State(3), "it does not wait for its pipeline, and so has its group no longer")
}

// tangled is two jobs whose pipelines have a job each with the group of the other.
func tangled(change ...func([]Job)) *Plan {
	jobs := []Job{
		{Name: "one", Group: "G", Depend: true}, {Name: "two", Group: "H", Depend: true},
		{Name: "one/in", Parent: 1, Group: "H"}, {Name: "two/in", Parent: 2, Group: "G"}, {Name: "after", Stage: 1},
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

// Jobs that wait for each other's groups do not wait for ever: one fails, and says why.
func TestARingOfGroupsIsFailed(t *testing.T) {
	p := tangled()
	p.Take(0)
	p.Take(1)
	p.Ended(0, Outcome{})
	require.Equal(t, Locked, p.State(2), "two is running yet")
	changes := p.Ended(1, Outcome{})
	require.Contains(t, changes, Change{2, Failed, `would wait for ever for the resource_group H: the pipeline of "two" has it, and waits for this one`})
	require.Equal(t, Ready, p.State(3), "the group is free by that")
	p.play(3, Outcome{})
	require.Equal(t, []string{"success", "success", "failed", "success", "skipped"}, states(p))

	p = tangled(func(jobs []Job) { jobs[2].AllowFailure.All = true })
	p.play(0, Outcome{})
	p.play(1, Outcome{})
	p.play(3, Outcome{})
	require.Equal(t, []string{"success", "success", "warning", "success", "ready"}, states(p))

	p = tangled(func(jobs []Job) { jobs[2].When = pipeline.Delayed })
	p.Take(0)
	p.Take(1)
	p.Ended(0, Outcome{})
	p.Ended(1, Outcome{})
	require.Equal(t, []State{Delayed, Locked}, []State{p.State(2), p.State(3)})
	p.Due(2)
	require.Equal(t, []State{Failed, Ready}, []State{p.State(2), p.State(3)})
}
