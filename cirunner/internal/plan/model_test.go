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

	w := newWorld(jobs, r)
	p, changes := begin(w.planned)
	check := &follower{t: t, jobs: w.planned, state: make([]State, len(w.planned))}
	check.apply(changes)
	var running []int
	for {
		// Delayed jobs come due at any time.
		for i := range w.planned {
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
			if more := w.start(i); len(more) > 0 {
				check.jobs, check.state = w.planned, append(check.state, make([]State, len(more))...)
				check.apply(p.Add(more))
			}
		}
		if len(running) == 0 {
			break
		}
		k := r.IntN(len(running))
		i := running[k]
		running = slices.Delete(running, k, k+1)
		check.apply(p.Ended(i, outcomes[w.of[i]][p.Attempts(i)-1]))
	}
	require.True(t, p.Done(), "seed %d: jobs are left", seed)
	for i, of := range w.of {
		require.Equal(t, want[of], p.State(i), "seed %d: job %d of %+v", seed, of, jobs)
		require.Equal(t, check.state[i], p.State(i), "seed %d: a change was not told", seed)
	}
}

// A world is jobs as a plan has them: those of some child pipelines come while the job runs that starts them, behind all others.
type world struct {
	jobs    []Job // in an order in which each comes behind what it waits for
	planned []Job
	of      []int       // the place in jobs of those that are planned
	at      map[int]int // the other way round
	later   map[int]bool
}

func newWorld(jobs []Job, r *rand.Rand) *world {
	w := &world{jobs: jobs, at: map[int]int{}, later: map[int]bool{}}
	for i := range jobs {
		w.later[i] = r.IntN(3) == 0 // its pipeline is made
	}
	w.plan(0)
	return w
}

// plan plans the jobs that are known together with those of a parent, and returns them.
func (w *world) plan(parent int) []Job {
	from := len(w.planned)
	known := map[int]bool{parent: true}
	for i, j := range w.jobs {
		if _, planned := w.at[i]; planned || !known[j.Parent] {
			continue
		}
		known[i+1] = !w.later[i]
		w.at[i] = len(w.planned)
		w.of = append(w.of, i)
		j.Needs = slices.Clone(j.Needs)
		for k := range j.Needs {
			j.Needs[k] = w.at[j.Needs[k]]
		}
		if j.Parent > 0 {
			j.Parent = w.at[j.Parent-1] + 1
		}
		w.planned = append(w.planned, j)
	}
	return w.planned[from:]
}

// start returns the jobs that come because another has started.
func (w *world) start(planned int) []Job { return w.plan(w.of[planned] + 1) }

// randomPipeline returns jobs in the order of their stages, the jobs of a child pipeline behind the one that starts it, and
// for each the outcomes of its attempts.
func randomPipeline(r *rand.Rand) (jobs []Job, outcomes [][]Outcome) {
	var add func(n, parent, depth int)
	add = func(n, parent, depth int) {
		stage := 0
		var own []int // the jobs of this pipeline
		for range n {
			stage += r.IntN(2)
			j := randomJob(r)
			j.Name, j.Stage, j.Parent = string(rune('a'+len(jobs))), stage, parent
			if j.HasNeeds = r.IntN(3) == 0; j.HasNeeds {
				for _, k := range own {
					if r.IntN(3) == 0 {
						j.Needs = append(j.Needs, k)
					}
				}
			}
			starts := depth < 2 && r.IntN(4) == 0
			if j.Depend = starts && r.IntN(2) == 0; j.Depend && j.Group == "two" {
				j.Group = "one" // with two groups of pipelines some would wait for each other
			}
			own = append(own, len(jobs))
			jobs = append(jobs, j)
			if starts {
				add(1+r.IntN(3), len(jobs), depth+1)
			}
		}
	}
	add(1+r.IntN(9), 0, 0)
	for range jobs {
		var attempts []Outcome
		for range 3 {
			attempts = append(attempts, []Outcome{good, good, bad, late, systems, killed}[r.IntN(6)])
		}
		outcomes = append(outcomes, attempts)
	}
	return jobs, outcomes
}

func randomJob(r *rand.Rand) Job {
	j := Job{AllowFailure: pipeline.AllowFailure{All: r.IntN(4) == 0}, Asked: r.IntN(2) == 0}
	j.When = []pipeline.When{pipeline.OnSuccess, pipeline.OnSuccess, pipeline.OnSuccess, pipeline.OnFailure, pipeline.Always, pipeline.Manual, pipeline.Delayed}[r.IntN(7)]
	j.Group = []string{"", "", "one", "two"}[r.IntN(4)]
	j.Retry.Max = r.IntN(3)
	if r.IntN(3) == 0 {
		j.Retry.When = []pipeline.Failure{pipeline.TimeoutFailure}
	}
	return j
}

// model is the dumb second opinion.
func model(jobs []Job, outcomes [][]Outcome) []State {
	state := make([]State, len(jobs))
	for i, j := range jobs {
		fail, unrun, held := false, false, false
		for k := range i {
			waits := jobs[k].Parent == j.Parent && jobs[k].Stage < j.Stage
			if j.HasNeeds {
				waits = slices.Contains(j.Needs, k)
			}
			if !waits {
				continue
			}
			fail = fail || state[k] == Failed || state[k] == Canceled
			unrun = unrun || state[k] == Skipped || state[k] == Manual
			held = held || state[k] == Blocked || state[k] == Manual && !jobs[k].AllowFailure.All
			childFailed, childHolds := below(jobs, state, k)
			fail, held = fail || childFailed, held || childHolds
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
		case j.Parent > 0 && state[j.Parent-1] != Succeeded:
			state[i] = Skipped
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

// below says what the pipeline of a job means for who waits for that.
func below(jobs []Job, state []State, k int) (failed, holds bool) {
	for c := range jobs {
		if !jobs[k].Depend || jobs[c].Parent != k+1 {
			continue
		}
		failed = failed || (state[c] == Failed || state[c] == Canceled) && !jobs[k].AllowFailure.All
		holds = holds || state[c] == Blocked || state[c] == Manual && !jobs[c].AllowFailure.All
		deeperFailed, deeperHolds := below(jobs, state, c)
		failed, holds = failed || deeperFailed, holds || deeperHolds
	}
	return failed, holds
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
		if j.HasNeeds && slices.Contains(j.Needs, k) || !j.HasNeeds && f.jobs[k].Stage < j.Stage && f.jobs[k].Parent == j.Parent {
			require.True(f.t, f.state[k].Final(), "%s starts before %s has ended", j.Name, f.jobs[k].Name)
		}
	}
}
