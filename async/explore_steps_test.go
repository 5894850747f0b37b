//go:build explore

package async

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/ambit-go/ambit/internal/explore"
)

// This file is what each kind of deed does.

// do does one step and returns its error, if it gives one.
func (e *env) do(s deed) error {
	switch s.what {
	case doStart:
		e.start(func(h *handle) *Future[int] {
			h.plain = true
			f := e.handler(h, s, 0)
			if s.opts&withRestart != 0 {
				f = e.restarted(h, s, f)
			}
			return Execute(e.ctx, f, e.options(h, s)...)
		})
	case doGo:
		own, f := e.owner, e.noted(e.owner.panics, s, e.plain(s, 0))
		opts, around := e.options(nil, s), e.daemonsAround(s)
		Go(e.ctx, func(ctx context.Context) error {
			err := f(ctx)
			if isPlanted(err) && s.opts&withRestart == 0 {
				e.locked(func() { own.errs = append(own.errs, failed{err, ctx, around}) })
			}
			return err
		}, opts...)
	case doAwait, doWait, doAwaitAll, doCancel, doDone:
		if h := e.pick(s.n); h != nil {
			return e.use(h, s)
		}
	case doSleep:
		began := time.Now()
		err := Sleep(e.ctx, s.d)
		if slept := time.Since(began); err == nil && slept < s.d {
			e.w.Failf("a sleep of %v ended for no reason after %v", s.d, slept)
		}
		return err
	case doDoomed:
		h := e.start(func(h *handle) *Future[int] {
			return Execute(e.ctx, func(ctx context.Context) (int, error) { return 0, Sleep(doomedContext(ctx, s.n), time.Hour) },
				On(spawner{})) // not on one that runs it here, where nobody could cancel it
		})
		e.w.Point("cancel")
		h.f.Cancel(nil)
	case doTouch:
		select {
		case <-e.ctx.Done():
		default:
		}
		_, _ = e.ctx.Deadline()
		return context.Cause(e.ctx)
	case doHang:
		return Sleep(e.ctx, time.Hour)
	case doScope:
		return e.scope(s)
	case doShield:
		f := e.plain(s, 0)
		return e.caught(func() error { return Shield(e.ctx, 5*time.Millisecond, f) })
	case doOnExit:
		f := e.plain(s, 0)
		OnExit(e.ctx, func(ctx context.Context, _ error) error { return f(ctx) })
	case doWithTimeout, doWithCancel, doWithoutCancel, doWithValue:
		return e.derived(s)
	case doForEach, doMap, doCompleted:
		return e.caught(func() error { return e.items(s) })
	default:
		e.choose(s)
	}
	return nil
}

// doomedContext returns ctx or one that is derived from it.
func doomedContext(ctx context.Context, n int) context.Context {
	switch n % 3 {
	case 0:
		return ctx
	case 1:
		return context.WithValue(ctx, plantedError(0), true)
	default:
		derived, cancel := context.WithCancel(ctx)
		context.AfterFunc(derived, cancel) // it ends with ctx
		return derived
	}
}

// caught calls f and makes a panic of the program an error.
func (e *env) caught(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = e.panicked(v)
		}
	}()
	return f()
}

// use does something with a future.
func (e *env) use(h *handle, s deed) error {
	switch s.what {
	case doAwait:
		return e.wait(h, s.d+0, func(f *Future[int]) (int, error) { return f.Await(e.ctx, s.d) })
	case doWait:
		return e.wait(h, 0, func(f *Future[int]) (int, error) { return f.Wait(e.ctx) })
	case doCancel:
		e.locked(func() { h.touched = true })
		h.f.Cancel(nil)
	case doDone:
		if !e.limit { // a channel lends no slot
			select {
			case <-h.f.Done():
			case <-e.ctx.Done():
			}
		}
	case doAwaitAll:
		all := slices.Clone(e.visible[:min(len(e.visible), 1+s.n%3)])
		futures := make([]*Future[int], len(all))
		for i, h := range all {
			futures[i] = h.f
			e.locked(func() { h.touched = true })
		}
		var first error
		for i, r := range AwaitAll(e.ctx, s.d, futures...) {
			if r.Err == nil {
				e.locked(func() { all[i].given++ })
			} else if first == nil {
				first = r.Err
			}
		}
		return first
	}
	return nil
}

// derived does steps under a context that it derives.
func (e env) derived(s deed) error {
	switch s.what {
	case doWithTimeout:
		ctx, cancel := context.WithTimeout(e.ctx, time.Duration(1+s.n%3)*time.Millisecond)
		defer cancel()
		e.ctx, e.uncancelled = ctx, false
	case doWithCancel:
		ctx, cancel := context.WithCancelCause(e.ctx)
		defer cancel(nil)
		e.ctx, e.uncancelled = ctx, false
		e.w.Go("canceller", func() {
			e.w.Point("cancel")
			cancel(errors.New("planted cause"))
		})
	case doWithValue:
		e.ctx = context.WithValue(e.ctx, plantedError(0), true)
	default:
		e.ctx, e.uncancelled = context.WithoutCancel(e.ctx), true
	}
	return e.run(s.parts[0])
}

// items works on the parts of s as items.
func (e *env) items(s deed) error {
	var opts []ForkOption
	if s.limit > 0 {
		opts = append(opts, Limit(s.limit))
	}
	inside := *e
	inside.limit = inside.limit || s.limit > 0
	var handlers []func(context.Context) (int, error)
	for range s.repeat {
		for i := range s.parts {
			handlers = append(handlers, inside.handler(nil, s, i))
		}
	}
	var first error
	switch s.what {
	case doForEach:
		return ForEach(e.ctx, slices.Values(handlers), func(ctx context.Context, f func(context.Context) (int, error)) error {
			_, err := f(ctx)
			return err
		}, opts...)
	case doMap:
		for _, err := range Map(e.ctx, slices.Values(handlers), func(ctx context.Context, f func(context.Context) (int, error)) (int, error) { return f(ctx) }, opts...) {
			if first == nil {
				first = err
			}
			if s.n%4 == 0 {
				break
			}
		}
	case doCompleted:
		for _, r := range AsCompleted(e.ctx, slices.Values(handlers), opts...) {
			if first == nil {
				first = r.Err
			}
		}
	}
	return first
}

// choose starts a future that its children decide, or a poll, or a promise.
func (e *env) choose(s deed) {
	e.start(func(h *handle) *Future[int] {
		var tasks []func(context.Context) (int, error)
		for i := range s.parts {
			tasks = append(tasks, e.handler(nil, s, i))
		}
		switch s.what {
		case doRace:
			return Race(e.ctx, tasks...)
		case doAny:
			return Any(e.ctx, tasks...)
		case doHedge:
			return Hedge(e.ctx, s.d, tasks...)
		case doAll:
			return ofMany(e, All(e.ctx, tasks...))
		case doQuorum:
			return ofMany(e, Quorum(e.ctx, 1+s.n%len(tasks), tasks...))
		case doSettle:
			return ofMany(e, Settle(e.ctx, tasks...))
		case doForkJoin:
			var opts []ForkOption
			if s.limit > 0 {
				opts = append(opts, Limit(s.limit))
			}
			return ofMany(e, ForkJoin(e.ctx, tasks, func(ctx context.Context, f func(context.Context) (int, error)) (int, error) { return f(ctx) }, opts...))
		case doPoll:
			left := 1 + s.n%3
			return Poll(e.ctx, Every(time.Millisecond), func(ctx context.Context) (int, bool, error) {
				left--
				if left > 0 {
					return 0, false, nil
				}
				v, err := tasks[0](ctx)
				return v, true, err
			})
		default: // doPromise
			if e.uncancelled { // if what resolves it fails, nothing settles it
				return Completed(0, nil)
			}
			f, p := NewPromise[int](e.ctx)
			Go(e.ctx, func(ctx context.Context) error {
				defer p.Reject(plantedError(0)) // if it panics where the scope goes on; else too late
				v, err := tasks[0](ctx)
				if err != nil {
					p.Reject(err)
				} else {
					p.Resolve(v)
				}
				return nil
			})
			return f
		}
	})
}

// ofMany awaits a future of many values in a task of its own.
func ofMany[T any](e *env, f *Future[[]T]) *Future[int] {
	return Execute(e.ctx, func(ctx context.Context) (int, error) {
		all, err := f.Await(ctx, 0)
		return len(all), err
	})
}

// The executors of the programs. None of them blocks for long: a pool whose
// places are held by tasks that wait for the pool can only time out.
var executors = []Executor{spawner{}, trySpawner{}, refuser{}, elsewhere{}}

// spawner has a goroutine for every task.
type spawner struct{}

func (spawner) Execute(task func()) error { go onGoroutine(task); return nil }

// trySpawner is one that never blocks.
type trySpawner struct{ spawner }

func (trySpawner) TryExecute(task func()) bool { go onGoroutine(task); return true }

// refuser refuses everything.
type refuser struct{}

func (refuser) Execute(func()) error { return errRefused }

var errRefused = errors.New("refused")

// elsewhere runs tasks on the goroutine that submits them.
type elsewhere struct{}

func (elsewhere) Execute(task func()) error { task(); return nil }

func onGoroutine(task func()) {
	of := new(byte)
	defer explore.Start("pool", of)()
	task()
}

// This file asks scopes of the programs about panics, and checks what comes of the
// answers.

// inquiry is what is known of the panics of a scope with OnPanic. The mu of the
// machine guards it.
type inquiry struct {
	panicked map[plantedPanic]bool // of its Go tasks, without those that are started again
	asked    map[plantedPanic]int
	beside   map[plantedPanic]bool // of one that counts: they are told with it, and nobody is asked
	raises   bool                  // an answer was that the panic is to be raised
	excused  []*PanicError         // those that are not
	carried  []*PanicError         // those of which the scope is not even to fail
}

func newInquiry() *inquiry {
	return &inquiry{panicked: map[plantedPanic]bool{}, asked: map[plantedPanic]int{}, beside: map[plantedPanic]bool{}}
}

// onPanic returns the option of a scope with q; what answers fail it with goes to own.
func (e env) onPanic(q *inquiry, own *owner, n int) ScopeOption {
	return OnPanic(func(p *PanicError) error {
		e.w.Point("asked")
		id, planted := p.Value.(plantedPanic)
		if !planted {
			e.w.Failf("a scope was asked about a panic that is none of the program: %v", p)
			return p
		}
		var answer error
		e.locked(func() {
			q.asked[id]++
			switch (n + int(id)) % 7 {
			case 0, 1:
				q.excused, q.carried = append(q.excused, p), append(q.carried, p)
			case 2:
				answer = plantedError(1000 + id)
				own.errs, q.excused = append(own.errs, failed{err: answer}), append(q.excused, p)
			case 3:
				answer = fmt.Errorf("%w: %w", plantedError(2000+id), p)
				own.errs, q.excused = append(own.errs, failed{err: plantedError(2000 + id)}), append(q.excused, p)
			default:
				answer, q.raises = p, true
			}
			if answer != nil {
				q.noteBeside(p)
			}
		})
		switch (n + int(id)) % 7 {
		case 5:
			panic(plantedPanic(3000 + id))
		case 6:
			runtime.Goexit()
		}
		return answer
	})
}

// noteBeside notes the panics that came beside p.
func (q *inquiry) noteBeside(p *PanicError) {
	for _, err := range p.Also {
		var other *PanicError
		if errors.As(err, &other) {
			if id, planted := other.Value.(plantedPanic); planted {
				q.beside[id] = true
			}
			q.noteBeside(other)
		}
	}
}

// noted returns f, a Go task of a scope with q, which may be nil; q hears of its panic.
func (e env) noted(q *inquiry, s deed, f func(context.Context) error) func(context.Context) error {
	if q == nil || s.opts&withRestart != 0 {
		return f
	}
	return func(ctx context.Context) error {
		defer func() {
			v := recover()
			if id, planted := v.(plantedPanic); planted {
				e.locked(func() { q.panicked[id] = true })
			}
			if v != nil {
				panic(v)
			}
		}()
		return f(ctx)
	}
}

// check looks at a scope with q that has ended, with cause as the cause of its ctx.
// raised is what it has panicked with, nil if it has returned.
func (q *inquiry) check(e env, raised any, cause error) {
	e.locked(func() {
		for id := range q.panicked {
			if q.asked[id] != 1 && !q.beside[id] {
				e.w.Failf("a scope was asked %d times about the panic %d of a task", q.asked[id], id)
			}
		}
		if q.raises && raised == nil {
			e.w.Failf("a panic was to be raised, and was not")
		}
		for _, p := range q.excused {
			if raised == any(p) {
				e.w.Failf("a panic was raised that was not to be: %v", p)
			}
		}
		for _, p := range q.carried {
			if saysOnly(cause, p) {
				e.w.Failf("a scope that was to carry on was cancelled: %v", p)
			}
		}
	})
}

// saysOnly reports whether err is p or only repeats it. An error that holds p, and says that
// something else went wrong too, as a time that had passed, may cancel a scope that is
// to carry on after p.
func saysOnly(err error, p *PanicError) bool {
	all := func(errs []error) bool {
		return len(errs) > 0 && !slices.ContainsFunc(errs, func(err error) bool { return !saysOnly(err, p) })
	}
	switch e := err.(type) {
	case nil:
		return false
	case *PanicError:
		return e == p
	case *ScopeError:
		return e.Dropped == 0 && (e.Cause == nil || saysOnly(e.Cause, p)) && (len(e.Errors) == 0 && e.Cause != nil || all(e.Errors))
	case interface{ Unwrap() []error }:
		return all(e.Unwrap())
	}
	return saysOnly(errors.Unwrap(err), p)
}
