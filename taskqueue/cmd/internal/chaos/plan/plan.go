// Package plan is what tasks of a run of chaos do, and how each of them may end.
package plan

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/cmd/internal/chaos/ledger"
)

// Type is that of all tasks of a run, header the name of what says which plan it is.
const (
	Type   = "chaos"
	header = "do"
	takes  = "ms"
)

// Mark is what successful tasks leave as their result, with " of " and their plan. It goes to the store with the
// settlement, and nowhere else in that direction.
const Mark = "mark of a settlement"

// A Do is the name of a plan.
type Do string

const (
	OK     Do = "ok"     // ends well
	Retry  Do = "retry"  // fails twice, then ends well
	Fail   Do = "fail"   // fails always
	Bury   Do = "bury"   // fails, and says that another run would not help
	Panic  Do = "panic"  // panics always
	Snooze Do = "snooze" // asks to be run later, half of the times
	Free   Do = "free"   // is given back, half of the times
	Long   Do = "long"   // runs for longer than a lease
	Deaf   Do = "deaf"   // runs for longer than a lease and looks at no context
	Poison Do = "poison" // kills its process as kill -9 does
)

// share is how many of a hundred tasks do what.
var share = []struct {
	do Do
	n  int
}{{OK, 66}, {Retry, 8}, {Fail, 4}, {Bury, 3}, {Panic, 2}, {Snooze, 5}, {Free, 3}, {Long, 5}, {Deaf, 3}, {Poison, 1}}

// Draw returns a task whose plan is drawn. kills: some may kill their workers.
func Draw(rng *rand.Rand, id string, kills bool) taskqueue.Task {
	n, do := rng.IntN(100), OK
	for _, s := range share {
		if n -= s.n; n < 0 {
			do = s.do
			break
		}
	}
	if do == Poison && !kills {
		do = OK
	}
	return do.Task(rng, id)
}

// Task returns a task that does d.
func (d Do) Task(rng *rand.Rand, id string) taskqueue.Task {
	t := taskqueue.Task{
		ID: id, Type: Type, Payload: []byte("payload of " + id), Retention: 30 * 24 * time.Hour, MaxFailures: 1000, MaxCrashes: 255,
		Headers: map[string]string{header: string(d), takes: strconv.Itoa(1 + rng.IntN(60))},
	}
	switch d {
	case Fail, Panic:
		t.MaxFailures = 2
	case Poison:
		t.MaxCrashes = 2
	case Long:
		t.Headers[takes] = strconv.Itoa(1200 + rng.IntN(1200))
	case Deaf:
		t.Headers[takes] = strconv.Itoa(1200 + rng.IntN(600))
	}
	return t
}

// Lease is that of all workers, and Limit the limit that the queue has: tenants are its keys.
const (
	Lease   = time.Second
	tenants = 4
)

// Limit bounds the runs of each tenant.
var Limit = taskqueue.Limit{Key: "tenant-*", Concurrency: 2}

// Relate has a task be counted with others, and wait for earlier ones, now and then.
func Relate(rng *rand.Rand, t *taskqueue.Task, earlier []string) {
	if rng.IntN(3) == 0 {
		t.LimitKey = fmt.Sprint("tenant-", rng.IntN(tenants))
	}
	if len(earlier) == 0 || rng.IntN(4) > 0 {
		return
	}
	for range 1 + rng.IntN(2) {
		if id := earlier[rng.IntN(len(earlier))]; !slices.Contains(t.After, id) {
			t.After = append(t.After, id)
		}
	}
	t.OnFailed = []taskqueue.OnFailed{taskqueue.OnFailedSkip, taskqueue.OnFailedRun, taskqueue.OnFailedWait}[rng.IntN(3)]
}

// Of returns the plan of a task.
func Of(t *taskqueue.Task) Do { return Do(t.Headers[header]) }

// MayEnd reports whether a task of this plan may end so, if nobody cancels it.
func (d Do) MayEnd(s taskqueue.State) bool {
	switch d {
	case Fail, Bury, Panic, Poison:
		return s == taskqueue.StateDead
	}
	return s == taskqueue.StateDone
}

// A Player has handlers do what the tasks say, and write down what they do.
type Player struct {
	Journal *ledger.Journal
	Places  int    // how many may run at a time
	Kill    func() // kills the process
	running atomic.Int64
}

// Handlers are those of a worker.
func (p *Player) Handlers() taskqueue.Handlers { return taskqueue.Handlers{Type: p.play} }

var errPlanned = errors.New("as it was planned")

// write ends the process if it cannot write down what happens: then nothing can be checked.
func (p *Player) write(e ledger.Entry) {
	if err := p.Journal.Write(e); err != nil {
		panic(err)
	}
}

func (p *Player) play(ctx context.Context, c *taskqueue.Claim) (err error) {
	p.write(ledger.Entry{Kind: ledger.Started, ID: c.ID, Token: c.Token})
	if n := p.running.Add(1); int(n) > p.Places {
		p.write(ledger.Entry{Kind: ledger.Fault, Text: fmt.Sprintf("%d handlers run in %d places", n, p.Places)})
	}
	defer p.running.Add(-1)
	if string(c.Payload) != "payload of "+c.ID {
		p.write(ledger.Entry{Kind: ledger.Fault, Text: fmt.Sprintf("task %s has the payload %q", c.ID, c.Payload)})
	}
	err = p.do(ctx, c)
	text := ""
	if err != nil {
		text = err.Error()
	}
	lost := errors.Is(context.Cause(ctx), taskqueue.ErrLeaseLost)
	p.write(ledger.Entry{Kind: ledger.Ended, ID: c.ID, Token: c.Token, Text: text, Lost: lost})
	if err == nil {
		c.SetResult([]byte(Mark + " of " + string(Of(&c.Task))))
	} else if Of(&c.Task) == Panic && errors.Is(err, errPlanned) {
		panic(err)
	}
	return err
}

func (p *Player) do(ctx context.Context, c *taskqueue.Claim) error {
	ms, _ := strconv.Atoi(c.Headers[takes])
	d := time.Duration(ms) * time.Millisecond
	do := Of(&c.Task)
	if do == Deaf {
		time.Sleep(d)
		return nil
	}
	if err := p.sleep(ctx, c, d); err != nil {
		return err
	}
	soon := time.Duration(rand.IntN(300)) * time.Millisecond
	switch {
	case do == Retry && c.Failures < 2, do == Fail:
		return taskqueue.RetryAfter(soon, errPlanned)
	case do == Panic:
		return errPlanned
	case do == Bury:
		return taskqueue.Dead(errPlanned)
	case do == Snooze && rand.IntN(2) == 0:
		return taskqueue.Snooze(soon)
	case do == Free && rand.IntN(2) == 0:
		return taskqueue.Release(errPlanned)
	case do == Poison:
		p.Kill()
	}
	return nil
}

// sleep notes now and then that the handler was told that it may go on.
func (p *Player) sleep(ctx context.Context, c *taskqueue.Claim, d time.Duration) error {
	for d > 0 {
		asked := ledger.Now()
		if ctx.Err() == nil {
			p.write(ledger.Entry{Kind: ledger.Believes, At: asked, ID: c.ID, Token: c.Token})
		}
		some := min(d, 100*time.Millisecond)
		if err := async.Sleep(ctx, some); err != nil {
			return err
		}
		d -= some
	}
	return nil
}

// Plans are all plans, for tests of what reads journals.
func Plans() (all []Do) {
	for _, s := range share {
		all = append(all, s.do)
	}
	return slices.Clip(all)
}
