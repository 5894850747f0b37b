//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/service"
)

// A runner runs a plan.
type runner struct {
	parallel int
	out      string // the directory of logs and artifacts
	grace    time.Duration

	mu     sync.Mutex
	stdout io.Writer
}

// errJobs says that the plan has not succeeded. The jobs are in the table.
var errJobs = errors.New("not all jobs have succeeded")

// run runs the jobs of a plan, as many at a time as may be, and returns when the last has ended.
//
// A stop has two levels, each a context. Scripts run under soft, after-scripts under hard, and soft is inside hard:
// a cancel ends the one, an abort both. Nothing is swapped when a script is over and its after-script
// begins, so at no moment does a cancel hit the wrong one.
func (r *runner) run(ctx context.Context, p *plan) (err error) {
	if r.out == "" {
		if r.out, err = os.MkdirTemp("", "runner"); err != nil {
			return err
		}
	}
	hurry := service.Hurry(ctx) // done at the second signal
	err = async.Scope(context.WithoutCancel(ctx), func(scope context.Context) error {
		hard, abort := context.WithCancelCause(scope)
		soft, cancel := context.WithCancelCause(hard)
		defer abort(nil)
		defer context.AfterFunc(hurry, func() { abort(context.Cause(hurry)) })()
		defer context.AfterFunc(ctx, func() {
			r.say("runner: %v: stopping; once more aborts", context.Cause(ctx))
			cancel(context.Cause(ctx))
		})()
		return r.work(soft, hard, p)
	}, async.Name("plan"))
	r.table(p)
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx) // service makes the exit status of it
	case p.outcome() != nil:
		return errJobs
	}
	return nil
}

// An end is how a job has ended.
type end struct {
	job   *job
	state state
}

// work starts what may run, waits for the first to end, and starts what may run then. The plan
// is touched by this goroutine alone.
func (r *runner) work(soft, hard context.Context, p *plan) error {
	ends := make(chan end, r.parallel) // so that no job waits to tell of its end
	busy := 0
	for {
		for busy < r.parallel && soft.Err() == nil {
			j := p.next()
			if j == nil {
				break
			}
			busy++
			async.Go(hard, func(context.Context) (err error) {
				e := end{j, failed}
				defer func() { ends <- e }() // whatever happens: it is waited for
				e.state, err = r.course(soft, hard, j)
				return err // the runner's own: it ends the plan
			}, async.Name(j.name))
		}
		if busy == 0 {
			p.stop() // only a stop leaves some that wait
			return nil
		}
		e := <-ends
		busy--
		p.finish(e.job.name, e.state)
	}
}

// table prints how the jobs have ended.
func (r *runner) table(p *plan) {
	for _, j := range p.jobs {
		r.say("%-9s %s", p.state[j.name], j.name)
	}
	r.say("logs and artifacts: %s", r.out)
}

// say prints a line. Jobs that run beside each other take turns.
func (r *runner) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.stdout, format+"\n", args...)
}
