package plan

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
)

// A pipeline is made of random bytes, run in a random order with a random limit,
// and compared with what a model says: the model goes through the jobs in the
// order of the stages and looks only at what came before, so it knows nothing
// of time, of a queue, or of events.
func FuzzAnyOrderEndsTheSame(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, seed, order uint64) { compareWithModel(t, seed, order) })
}

func TestAnyOrderEndsTheSame(t *testing.T) {
	for seed := range uint64(3000) {
		compareWithModel(t, seed, seed*7919)
	}
}

func compareWithModel(t *testing.T, seed, order uint64) {
	jobs, outcomes := randomPipeline(rand.New(rand.NewPCG(seed, 1)))
	want := model(jobs, outcomes)
	r := rand.New(rand.NewPCG(order, 2))
	limit := 1 + r.IntN(4)

	p, changes := begin(jobs)
	check := &follower{t: t, jobs: jobs, state: make([]State, len(jobs))}
	check.apply(changes)
	var running []int
	for {
		// Delayed jobs come due at any time.
		for i := range jobs {
			if p.State(i) == Delayed && (len(running) == 0 || r.IntN(2) == 0) {
				check.apply(p.Due(i))
			}
		}
		for len(running) < limit {
			i, attempt, ok := p.next()
			if !ok {
				break
			}
			check.taken(i, attempt)
			running = append(running, i)
		}
		if len(running) == 0 {
			break
		}
		k := r.IntN(len(running))
		i := running[k]
		running = slices.Delete(running, k, k+1)
		check.apply(p.Ended(i, outcomes[i][p.Attempts(i)-1]))
	}
	require.True(t, p.Done(), "seed %d: jobs are left", seed)
	for i := range jobs {
		require.Equal(t, want[i], p.State(i), "seed %d: job %d of %+v", seed, i, jobs)
		require.Equal(t, check.state[i], p.State(i), "seed %d: a change was not told", seed)
	}
}

// randomPipeline returns jobs in the order of their stages, and for each the
// outcomes of its attempts.
func randomPipeline(r *rand.Rand) ([]Job, [][]Outcome) {
	n := 1 + r.IntN(9)
	jobs, outcomes := make([]Job, n), make([][]Outcome, n)
	stage := 0
	for i := range jobs {
		stage += r.IntN(2)
		j := Job{Name: string(rune('a' + i)), Stage: stage, AllowFailure: pipeline.AllowFailure{All: r.IntN(4) == 0}, Asked: r.IntN(2) == 0}
		j.When = []pipeline.When{pipeline.OnSuccess, pipeline.OnSuccess, pipeline.OnSuccess, pipeline.OnFailure, pipeline.Always, pipeline.Manual, pipeline.Delayed}[r.IntN(7)]
		j.Group = []string{"", "", "one", "two"}[r.IntN(4)]
		j.Retry.Max = r.IntN(3)
		if r.IntN(3) == 0 {
			j.Retry.When = []pipeline.Failure{pipeline.TimeoutFailure}
		}
		if j.HasNeeds = r.IntN(3) == 0; j.HasNeeds {
			for k := range i {
				if r.IntN(3) == 0 {
					j.Needs = append(j.Needs, k)
				}
			}
		}
		jobs[i] = j
		for range 3 {
			outcomes[i] = append(outcomes[i], []Outcome{good, good, bad, late, systems, killed}[r.IntN(6)])
		}
	}
	return jobs, outcomes
}

// model is the dumb second opinion.
func model(jobs []Job, outcomes [][]Outcome) []State {
	state := make([]State, len(jobs))
	for i, j := range jobs {
		fail, unrun, held := false, false, false
		for k := range i {
			waits := jobs[k].Stage < j.Stage
			if j.HasNeeds {
				waits = slices.Contains(j.Needs, k)
			}
			if !waits {
				continue
			}
			fail = fail || state[k] == Failed || state[k] == Canceled
			unrun = unrun || state[k] == Skipped || state[k] == Manual
			held = held || state[k] == Blocked || state[k] == Manual && !jobs[k].AllowFailure.All
		}
		skip := fail
		if j.When == pipeline.OnFailure {
			skip = !fail
		}
		skip = skip || j.HasNeeds && unrun
		if j.When == pipeline.Always {
			skip = false
		}
		switch {
		case held:
			state[i] = Blocked
		case skip:
			state[i] = Skipped
		case j.When == pipeline.Manual && !j.Asked:
			state[i] = Manual
		default:
			state[i] = lastAttempt(&j, outcomes[i])
		}
	}
	return state
}

func lastAttempt(j *Job, outcomes []Outcome) State {
	for attempt, o := range outcomes {
		switch {
		case o.OK():
			return Succeeded
		case o.Cause == Stopped:
			return Canceled
		case attempt < j.Retry.Max && (len(j.Retry.When) == 0 || o.Cause == j.Retry.When[0]):
			continue
		case j.AllowFailure.All:
			return Warned
		default:
			return Failed
		}
	}
	panic("the last attempt decides")
}

// A follower knows only the changes that it is told.
type follower struct {
	t     *testing.T
	jobs  []Job
	state []State
}

func (f *follower) apply(changes []Change) {
	for _, c := range changes {
		require.False(f.t, f.state[c.Job].Final(), "a final state was left")
		f.state[c.Job] = c.State
	}
}

// taken checks that nothing starts too early, or too often.
func (f *follower) taken(i, attempt int) {
	j := f.jobs[i]
	require.Equal(f.t, Ready, f.state[i])
	require.LessOrEqual(f.t, attempt, j.Retry.Max+1)
	f.state[i] = Running
	for k := range f.jobs {
		other := k != i && j.Group != "" && f.jobs[k].Group == j.Group
		require.False(f.t, other && (f.state[k] == Running || f.state[k] == Ready), "%s starts beside %s of its group", j.Name, f.jobs[k].Name)
	}
	for k := range f.jobs {
		if j.HasNeeds && slices.Contains(j.Needs, k) || !j.HasNeeds && f.jobs[k].Stage < j.Stage {
			require.True(f.t, f.state[k].Final(), "%s starts before %s has ended", j.Name, f.jobs[k].Name)
		}
	}
}
