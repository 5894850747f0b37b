package explore

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A Strategy says how schedules are chosen.
type Strategy struct {
	exhaustive bool
	bound      int
}

// Exhaustive tries all schedules of one program with at most bound preemptions.
// It is for programs that do not use World.Rand.
func Exhaustive(bound int) Strategy { return Strategy{true, bound} }

// Config says what to explore. The zero value explores at random for a while.
type Config struct {
	Seed      uint64        // 0: EXPLORE_SEED, or one that is new each time
	Schedules int           // how many; 0: as many as Time allows
	Time      time.Duration // how long, in real time; 0: EXPLORE_TIME, or 2 s. With Schedules set 0 is no limit
	Strategy  Strategy      // zero: a mixture of random walks, sticky ones and probabilistic concurrency testing
	Level     Level         // zero: half the schedules at Locks, half at Atomics
	Same      int           // how many schedules in a row are of the same program, that is with the same World.Rand; 0: 16
	Limit     time.Duration // virtual time that the program may take; 0: 1 s
	Steps     int           // decisions that it may take; 0: 20,000
	Ticks     int           // how often time may pass while something can go on; 0: 12, negative: never
}

// A Finding is a schedule that failed.
type Finding struct {
	Err       error
	Seed      uint64        // of the whole exploration
	Schedules int           // that it took
	Took      time.Duration // real time, without shrinking
	Found     int           // deviations before shrinking
	Shrunk    int           // and after
	Replay    string        // the value of EXPLORE_REPLAY
	Trace     string
}

// Stats counts what an exploration did.
type Stats struct {
	Schedules, Decisions int
	Complete             bool // an exhaustive search has come to its end
}

// Run explores program and fails t with the shortest failing schedule that it
// can make of the first that fails. No two explorations run at the same time.
//
// Each schedule calls program on a goroutine of a new bubble, which it may only
// leave when what it has started has ended. Environment: EXPLORE_SEED,
// EXPLORE_TIME (a duration), EXPLORE_REPLAY (what a failure prints).
func Run(t *testing.T, c Config, program func(w *World)) Stats {
	t.Helper()
	found, stats := Find(t, c, program)
	if found != nil {
		t.Fatal(found.report(t.Name()))
	}
	t.Logf("%d schedules, %d decisions", stats.Schedules, stats.Decisions)
	return stats
}

func (f *Finding) report(test string) string {
	return fmt.Sprintf("%v\n\nschedule %d of EXPLORE_SEED=%d after %v; %d deviations, shrunk to %d\nreplay: EXPLORE_REPLAY='%s' go test -tags explore -run '^%s$'\n\n%s",
		f.Err, f.Schedules, f.Seed, f.Took.Round(time.Millisecond), f.Found, f.Shrunk, f.Replay, test, f.Trace)
}

// Find is Run for who wants to look at what was found, nil if nothing was.
func Find(t *testing.T, c Config, program func(w *World)) (*Finding, Stats) {
	t.Helper()
	e := newExploration(t, c, program)
	defer e.close()
	if s := os.Getenv("EXPLORE_REPLAY"); s != "" {
		r, err := parseReplay(s)
		if err != nil {
			t.Fatalf("EXPLORE_REPLAY: %v", err)
		}
		return e.replay(r), Stats{Schedules: 1}
	}
	return e.run()
}

// An exploration is one call of Find.
type exploration struct {
	t       *testing.T
	c       Config
	program func(*World)
	limits  limits
	record  *record
	steps   int // decisions of the schedule before
}

func newExploration(t *testing.T, c Config, program func(*World)) *exploration {
	if c.Seed == 0 {
		c.Seed, _ = strconv.ParseUint(os.Getenv("EXPLORE_SEED"), 10, 64)
	}
	if c.Seed == 0 {
		c.Seed = uint64(rand.Uint32()) + 1
	}
	if c.Time == 0 && c.Schedules == 0 {
		c.Time = 2 * time.Second
		if d, err := time.ParseDuration(os.Getenv("EXPLORE_TIME")); err == nil {
			c.Time = d
		}
	}
	if c.Same == 0 {
		c.Same = 16
	}
	l := limits{c.Limit, c.Steps, c.Ticks}
	if l.time == 0 {
		l.time = time.Second
	}
	if l.steps == 0 {
		l.steps = 20_000
	}
	if l.ticks == 0 {
		l.ticks = 12
	}
	return &exploration{t: t, c: c, program: program, limits: l, record: newRecord(t.Name(), c.Seed), steps: 100}
}

func (e *exploration) close() { e.record.close() }

// run explores until something fails, or all or enough has been tried.
func (e *exploration) run() (*Finding, Stats) {
	var stats Stats
	began := time.Now()
	hangs := time.AfterFunc(patience, e.hangs)
	defer hangs.Stop()
	walk := &exhaustive{bound: e.c.Strategy.bound}
	for i := 0; e.c.Schedules == 0 || i < e.c.Schedules; i++ {
		if e.c.Time > 0 && time.Since(began) > e.c.Time {
			break
		}
		r := e.schedule(i)
		var s strategy
		if e.c.Strategy.exhaustive {
			if !walk.begin() {
				stats.Complete = true
				break
			}
			s = walk
		} else {
			s, _ = mixed(rand.New(rand.NewPCG(r.schedule, 1)), r.steps)
		}
		e.record.begin(r)
		hangs.Reset(patience)
		out := runOne(e.t, e.program, r.program, r.level, s, e.limits, false)
		stats.Schedules++
		stats.Decisions += out.steps
		e.steps = max(out.steps, 1)
		if out.failure != nil {
			f := &Finding{Err: out.failure, Seed: e.c.Seed, Schedules: i + 1, Took: time.Since(began), Found: len(out.deviations)}
			r.fixed, r.deviations = true, out.deviations
			e.shrink(f, r, out)
			return f, stats
		}
	}
	return nil, stats
}

// patience is how much real time a schedule may take. It takes milliseconds.
const patience = time.Minute

// hangs ends the process, whose traceback says why: a goroutine is blocked on a
// lock that is not the driver's while the holder is at a point, or runs for ever
// without coming to one.
func (e *exploration) hangs() {
	debug.SetTraceback("all")
	panic(fmt.Sprintf("explore: a schedule has not ended after %v of real time; see %s", patience, e.record.name()))
}

// schedule returns what the i-th schedule is to be.
func (e *exploration) schedule(i int) replayed {
	program := i / e.c.Same
	if e.c.Strategy.exhaustive {
		program = 0
	}
	r := replayed{program: mix(e.c.Seed, uint64(program)), schedule: mix(e.c.Seed+1, uint64(i)), level: e.c.Level, steps: e.steps}
	switch {
	case r.level != Mixed:
	case e.c.Strategy.exhaustive:
		r.level = Atomics
	default:
		r.level = Locks + Level(mix(r.schedule, 2)%2)
	}
	return r
}

// mix makes one number of two.
func mix(a, b uint64) uint64 { return rand.NewPCG(a, b).Uint64() }

// replay runs one schedule as it was.
func (e *exploration) replay(r replayed) *Finding {
	s, _ := mixed(rand.New(rand.NewPCG(r.schedule, 1)), r.steps)
	if r.fixed {
		s = newReplay(r.deviations)
	}
	out := runOne(e.t, e.program, r.program, r.level, s, e.limits, true)
	if out.failure == nil {
		return nil
	}
	return &Finding{Err: out.failure, Seed: e.c.Seed, Schedules: 1, Found: len(out.deviations), Shrunk: len(out.deviations), Replay: r.String(), Trace: out.trace}
}

// shrink makes f as short as it can.
func (e *exploration) shrink(f *Finding, r replayed, out outcome) {
	budget := 400
	if out.leaked {
		budget = 60 // each failing try leaves goroutines behind
	}
	run := func(d []deviation, tell bool) outcome {
		return runOne(e.t, e.program, r.program, r.level, newReplay(d), e.limits, tell)
	}
	class := classOf(out.failure)
	r.deviations = shrink(r.deviations, budget, func(d []deviation) bool {
		again := run(d, false).failure
		return again != nil && classOf(again) == class
	})
	f.Shrunk, f.Replay = len(r.deviations), r.String()
	if told := run(r.deviations, true); told.failure != nil {
		f.Err, f.Trace = told.failure, told.trace
	} else {
		f.Trace = "this schedule is not the same each time: the trace is missing"
	}
}

// classOf is the beginning of a failure's text without numbers, which change from
// schedule to schedule.
func classOf(err error) string {
	s := err.Error()
	if i := strings.IndexAny(s, ":\n"); i >= 0 {
		s = s[:i]
	}
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, s)
}
