package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/scheduler"
)

// Here several goroutines use several workers of one scheduler at once, and
// their tasks, too. Nobody can tell what happens when; but some things must
// hold whatever happens, and these are looked at.

// progTask is what is known of one task.
type progTask struct {
	w         *progWorker
	by, n     int // the n-th of those that by has scheduled, to be run in order
	ordered   bool
	every     bool
	err       error // it was not accepted
	handle    scheduler.Task
	post      bool
	cancelled bool // Cancel has said so
	ran       atomic.Int32
}

type progWorker struct {
	r      *progRun
	w      *scheduler.ExecutorWorker
	block  bool
	seen   bool // there is an observer
	inside atomic.Int32
	events [scheduler.Exited + 1]atomic.Int64
	submit atomic.Int64

	last map[int]int // of each goroutine; no lock: tasks do not overlap
	own  int         // tasks that its tasks have scheduled; no lock either
}

type progRun struct {
	inline, exits bool
	workers       []*progWorker
	mu            sync.Mutex // guards what follows
	tasks         []*progTask
	wrong         []string
}

func (r *progRun) fault(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

// progUser is one goroutine.
type progUser struct {
	r       *progRun
	id      int
	data    []byte
	n       int
	tasks   []*progTask
	futures []*async.Future[int]
}

func (u *progUser) next(n int) int {
	if len(u.data) == 0 {
		return 0
	}
	b := u.data[0]
	u.data = u.data[1:]
	return int(b) % n
}

// task makes the n-th task of by.
func (r *progRun) task(w *progWorker, by, n int) *progTask {
	p := &progTask{w: w, by: by, n: n, ordered: true}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tasks = append(r.tasks, p)
	return p
}

// enter is how every task begins; what it returns is how it ends.
func (p *progTask) enter() (leave func()) {
	w := p.w
	if w.inside.Add(1) != 1 {
		w.r.fault("two tasks of one worker at once")
	}
	p.ran.Add(1)
	if p.ordered {
		if w.last[p.by] >= p.n {
			w.r.fault("task %d of goroutine %d ran after its task %d", p.n, p.by, w.last[p.by])
		}
		w.last[p.by] = p.n
	}
	return func() { w.inside.Add(-1) }
}

// body is what p does.
func (p *progTask) body(act, arg int) func(context.Context) {
	return func(ctx context.Context) {
		defer p.enter()()
		w := p.w
		if ctx != nil && !scheduler.InWorker(ctx, w.w) {
			w.r.fault("a task is not in its worker")
		}
		switch act {
		case 0:
			time.Sleep(time.Duration(arg) * time.Millisecond)
		case 1:
			runtime.Gosched()
		case 2:
			panic("on purpose")
		case 3:
			if w.r.exits {
				runtime.Goexit()
			}
		case 4, 5:
			if !w.block {
				w.own++
				c := w.r.task(w, -1, w.own)
				c.handle, c.err = w.w.Schedule(c.body(9, 0))
			}
		case 6:
			if arg == 0 {
				w.w.CancelPending()
			}
		case 7:
			if ctx != nil && !errors.Is(w.w.Wait(ctx), scheduler.ErrSelfWait) {
				w.r.fault("a task waits for its worker")
			}
		}
	}
}

// step does one thing.
func (u *progUser) step(ctx context.Context) {
	w := u.r.workers[u.next(len(u.r.workers))]
	act, arg := u.next(20), u.next(5)
	d := time.Duration(1+u.next(5)) * time.Millisecond
	switch u.next(16) {
	case 0, 1, 2, 3:
		p := u.task(w)
		p.handle, p.err = w.w.Schedule(p.body(act, arg))
	case 4, 5:
		p := u.task(w)
		p.post = true
		f := p.body(act, arg)
		p.err = w.w.Post(func() { f(nil) })
	case 6, 7:
		p := u.task(w)
		p.ordered = false
		p.handle, p.err = w.w.ScheduleAfter(d, p.body(act, arg))
	case 8:
		if w.block || u.r.inline && act == 0 {
			return // it keeps its place, or its goroutine, for ever
		}
		p := u.task(w)
		p.ordered, p.every = false, true
		p.handle, p.err = w.w.ScheduleEvery(d, d, p.body(act, arg))
	case 9, 10:
		if len(u.tasks) > 0 {
			p := u.tasks[u.next(len(u.tasks))]
			if p.handle.Cancel() {
				if p.cancelled {
					u.r.fault("Cancel was true twice")
				}
				p.cancelled = true
			}
		}
	case 11:
		if act == 0 {
			w.w.CancelPending()
		}
		time.Sleep(d)
	case 12:
		u.submit(ctx, w, act, arg)
	case 13:
		short, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		if err := w.w.Wait(short); err != nil && short.Err() == nil {
			u.r.fault("Wait: %v", err)
		}
	case 14:
		time.Sleep(d)
	case 15:
		switch act {
		case 0:
			_ = w.w.Close()
		case 1:
			short, cancel := context.WithTimeout(ctx, d)
			defer cancel()
			_ = w.w.Drain(short)
		}
	}
}

func (u *progUser) task(w *progWorker) *progTask {
	u.n++
	p := u.r.task(w, u.id, u.n)
	u.tasks = append(u.tasks, p)
	return p
}

// submit starts a future, and perhaps cancels it or waits for it.
func (u *progUser) submit(ctx context.Context, w *progWorker, act, arg int) {
	w.submit.Add(1)
	p := &progTask{w: w}
	f := func(context.Context) (int, error) {
		defer p.enter()()
		if act == 2 {
			panic("on purpose")
		}
		time.Sleep(time.Duration(arg) * time.Millisecond)
		return 42, nil
	}
	if act == 3 {
		short, cancel := context.WithTimeout(ctx, time.Duration(arg)*time.Millisecond)
		defer cancel()
		if v, err := scheduler.Call(short, w.w, f); (err == nil) != (v == 42) || err == nil && p.ran.Load() != 1 {
			u.r.fault("Call returned %d, %v", v, err)
		}
		return
	}
	future := scheduler.Submit(w.w, f)
	if u.futures = append(u.futures, future); act == 4 {
		future.Cancel(errors.New("enough"))
	}
}
