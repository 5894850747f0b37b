package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
)

var (
	good    = Outcome{}
	bad     = Outcome{Cause: pipeline.ScriptFailure, ExitCode: 1}
	killed  = Outcome{Cause: Stopped}
	late    = Outcome{Cause: pipeline.TimeoutFailure}
	systems = Outcome{Cause: pipeline.SystemFailure}
)

// ends runs a plan one job at a time and returns the final states.
func ends(t *testing.T, jobs []Job, outcomes map[string][]Outcome) map[string]State {
	t.Helper()
	p, _ := begin(jobs)
	for {
		i, attempt, ok := p.next()
		if !ok {
			break
		}
		o := good
		if of := outcomes[jobs[i].Name]; len(of) > 0 {
			o = of[min(attempt, len(of))-1]
		}
		p.Ended(i, o)
	}
	require.True(t, p.Done())
	final := map[string]State{}
	for i := range jobs {
		final[jobs[i].Name] = p.State(i)
	}
	return final
}

func TestWhichJobsRun(t *testing.T) {
	a, b := Job{Name: "a"}, Job{Name: "b", Stage: 1}
	with := func(j Job, change func(*Job)) Job { change(&j); return j }
	needs := func(ks ...int) func(*Job) {
		return func(j *Job) {
			j.HasNeeds = true
			j.Needs = append(j.Needs, ks...)
		}
	}
	when := func(w pipeline.When) func(*Job) { return func(j *Job) { j.When = w } }
	aFails := map[string][]Outcome{"a": {bad}}
	tests := []struct {
		name     string
		jobs     []Job
		outcomes map[string][]Outcome
		want     State // of b
	}{
		{"after a success", []Job{a, b}, nil, Succeeded},
		{"not after a failure", []Job{a, b}, aFails, Skipped},
		{"after a failure that is allowed", []Job{with(a, func(j *Job) { j.AllowFailure.All = true }), b}, aFails, Succeeded},
		{"after an exit code that is allowed", []Job{with(a, func(j *Job) { j.AllowFailure.ExitCodes = []int{1} }), b}, aFails, Succeeded},
		{"not after another exit code", []Job{with(a, func(j *Job) { j.AllowFailure.ExitCodes = []int{2} }), b}, aFails, Skipped},
		{"on_failure after a failure", []Job{a, with(b, when(pipeline.OnFailure))}, aFails, Succeeded},
		{"on_failure not after a success", []Job{a, with(b, when(pipeline.OnFailure))}, nil, Skipped},
		{"on_failure not after a failure that is allowed",
			[]Job{with(a, func(j *Job) { j.AllowFailure.All = true }), with(b, when(pipeline.OnFailure))}, aFails, Skipped},
		{"always after a failure", []Job{a, with(b, when(pipeline.Always))}, aFails, Succeeded},
		{"always after a success", []Job{a, with(b, when(pipeline.Always))}, nil, Succeeded},
		{"manual", []Job{a, with(b, when(pipeline.Manual))}, nil, Manual},
		{"manual that is asked for", []Job{a, with(b, func(j *Job) { j.When, j.Asked = pipeline.Manual, true })}, nil, Succeeded},
		{"after a manual job that may be left out",
			[]Job{with(a, func(j *Job) { j.When, j.AllowFailure.All = pipeline.Manual, true }), b}, nil, Succeeded},
		{"not after a manual job that holds", []Job{with(a, when(pipeline.Manual)), b}, nil, Blocked},
		{"needs a manual job that holds", []Job{with(a, when(pipeline.Manual)), with(b, needs(0))}, nil, Blocked},
		{"no needs: whatever the others do", []Job{a, with(b, needs())}, aFails, Succeeded},
		{"needs one that fails", []Job{a, with(b, needs(0))}, aFails, Skipped},
		{"needs one that is not run", []Job{with(a, func(j *Job) { j.When, j.AllowFailure.All = pipeline.Manual, true }), with(b, needs(0))}, nil, Skipped},
		{"needs and always", []Job{a, with(b, func(j *Job) { needs(0)(j); j.When = pipeline.Always })}, aFails, Succeeded},
		{"needs the other only", []Job{a, with(b, needs(2)), {Name: "c"}}, aFails, Succeeded},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, ends(t, tt.jobs, tt.outcomes)["b"])
		})
	}
}

func TestRetries(t *testing.T) {
	tests := []struct {
		name     string
		retry    pipeline.Retry
		outcomes []Outcome
		want     State
		attempts int
	}{
		{"none", pipeline.Retry{}, []Outcome{bad, good}, Failed, 1},
		{"until it succeeds", pipeline.Retry{Max: 2}, []Outcome{bad, good}, Succeeded, 2},
		{"as often as allowed", pipeline.Retry{Max: 2}, []Outcome{bad}, Failed, 3},
		{"after this cause", pipeline.Retry{Max: 1, When: []pipeline.Failure{"job_execution_timeout"}}, []Outcome{late, good}, Succeeded, 2},
		{"not after another", pipeline.Retry{Max: 1, When: []pipeline.Failure{"job_execution_timeout"}}, []Outcome{bad, good}, Failed, 1},
		{"always", pipeline.Retry{Max: 1, When: []pipeline.Failure{"always"}}, []Outcome{systems, good}, Succeeded, 2},
		{"after this exit code", pipeline.Retry{Max: 1, ExitCodes: []int{1}}, []Outcome{bad, good}, Succeeded, 2},
		{"not after another exit code", pipeline.Retry{Max: 1, ExitCodes: []int{2}}, []Outcome{bad, good}, Failed, 1},
		{"exit codes only", pipeline.Retry{Max: 1, ExitCodes: []int{1}}, []Outcome{late, good}, Failed, 1},
		{"never what a person stopped", pipeline.Retry{Max: 2, When: []pipeline.Failure{"always"}}, []Outcome{killed, good}, Canceled, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, _ := begin([]Job{{Name: "a", Retry: tt.retry}})
			attempts := 0
			for {
				i, attempt, ok := p.next()
				if !ok {
					break
				}
				attempts = attempt
				p.Ended(i, tt.outcomes[min(attempt, len(tt.outcomes))-1])
			}
			assert.Equal(t, tt.want, p.State(0))
			assert.Equal(t, tt.attempts, attempts)
		})
	}
}

// Jobs become ready in the order of the file, and an attempt that is repeated
// waits behind those who have not had their first.
func TestTheQueueIsFair(t *testing.T) {
	p, _ := begin([]Job{{Name: "a", Retry: pipeline.Retry{Max: 1}}, {Name: "b"}, {Name: "c"}})
	var order []int
	for {
		i, attempt, ok := p.next()
		if !ok {
			break
		}
		order = append(order, i)
		if i == 0 && attempt == 1 {
			p.Ended(i, bad)
		} else {
			p.Ended(i, good)
		}
	}
	assert.Equal(t, []int{0, 1, 2, 0}, order)
}

func TestNothingStartsAfterStop(t *testing.T) {
	p, _ := begin([]Job{{Name: "a", Retry: pipeline.Retry{Max: 3}}, {Name: "b"}, {Name: "c", Stage: 1, When: pipeline.Always}})
	_, _, ok := p.next()
	require.True(t, ok)
	changes := p.Stop("stopped")
	assert.Equal(t, []Change{{1, Canceled, "stopped"}, {2, Canceled, "stopped"}}, changes)
	assert.Empty(t, p.Stop("again"))
	_, _, ok = p.next()
	assert.False(t, ok)
	p.Ended(0, bad)
	assert.Equal(t, Failed, p.State(0), "no retry")
	assert.True(t, p.Done())
}

func TestIllegalTransitionsPanic(t *testing.T) {
	p, _ := begin([]Job{{Name: "a"}})
	assert.PanicsWithValue(t, `plan: invalid transition of "a" [ready -> success]`, func() { p.Ended(0, good) })
	assert.Panics(t, func() { New([]Job{{Name: "a", Needs: []int{7}}}) })
}
