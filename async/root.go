package async

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/ambit-go/ambit/internal/bridge"
)

// shutdownGrace is how long Shutdown gives cancelled tasks to return once
// their abort hooks have ended.
const shutdownGrace = 100 * time.Millisecond

// A root owns what no scope owns: top scopes, root tasks, detached tasks and
// stragglers. There is one for the process; a test brings its own in its ctx.
type root struct {
	t       task
	s       scope
	lost    func(error) // told what there is nobody else to tell; nil prints
	closing bool        // Shutdown has been called; guarded by s.mu
}

// process is the root of contexts that carry none. It has no context of its
// own, so nothing of one synctest bubble can be left in it for the next.
var process = new(root)

func init() {
	process.open(nil)
	endedHalf.t, endedHalf.home, endedHalf.ended = new(task), process, true
	endedHalf.t.half.Store(endedHalf)
	endedHalf.sig.Store(endedSignal)

	bridge.NewRoot = func(ctx context.Context, lost func(error)) context.Context { return &newRoot(ctx, lost).t }
	bridge.Live = func(ctx context.Context) []string {
		t, _ := nearest(ctx)
		return ownerOf(t).home.live()
	}
}

func newRoot(ctx context.Context, lost func(error)) *root {
	r := &root{lost: lost}
	r.open(&more{ctx: ctx})
	r.s.watch(ctx)
	return r
}

func (r *root) open(m *more) {
	r.t.kind, r.t.more = kindRoot, m
	r.s.t, r.s.home = &r.t, r
	r.t.state.Store(stateRunning)
	r.t.half.Store(&r.s)
}

// live returns the names of what is registered at r.
func (r *root) live() []string {
	r.s.mu.Lock()
	all := r.s.childrenLocked(func(*task) bool { return true })
	r.s.mu.Unlock()
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = t.name()
	}
	return names
}

// ownerOf returns the scope that what is started under t belongs to; that of
// the process if t is nil.
func ownerOf(t *task) *scope {
	if t == nil {
		return &process.s
	}
	return t.scope()
}

// report tells the root's handler of an error that nobody else can be told.
func (r *root) report(err error) {
	if r.lost != nil {
		r.lost(err)
		return
	}
	fmt.Fprintf(os.Stderr, "async: nobody was given this error: %v\n", err)
}

// reportWhenCollected reports x if f is collected before it was given.
func (r *root) reportWhenCollected(f *future, x *failure) {
	runtime.AddCleanup(f, func(x *failure) {
		r.s.mu.Lock()
		taken := x.taken
		r.s.mu.Unlock()
		if !taken {
			r.report(x.v.err)
		}
	}, x)
}

// printLate prints a panic that waits for somebody who does not come home.
func (r *root) printLate(p *PanicError, scope string, left *StragglerError) {
	r.report(fmt.Errorf("%w\nasync: this panic has waited %v to be raised by %s, which waits for: %v", p, panicPatience, scope, left))
}

// Detach starts task so that it outlives the scope of ctx. It is the only way
// to do so, and on record: the task is registered under name, which must not
// be empty, at the root until it ends. Its context keeps the values of ctx but
// not its cancellation. Its error is returned by [Shutdown]; a panic of it
// ends the process, with its stack, as there is nobody to re-raise it. Detach
// does not block, and panics once Shutdown has been called.
func Detach(ctx context.Context, name string, task func(ctx context.Context) error, opts ...TaskOption) {
	if task == nil {
		panic("async: Detach with a nil function")
	}
	if name == "" {
		panic("async: Detach without a name: whoever finds it running must be able to tell what it is")
	}
	t, _ := nearest(ctx)
	home := ownerOf(t).home
	g := &goTask{handler: task}
	g.t.self, g.t.kind, g.t.owner = g, kindDetached, &home.s
	g.t.more = newMore(context.WithoutCancel(ctx), opts)
	g.t.more.name = name
	if !home.admit(&g.t) {
		panic("async: Detach after Shutdown: " + name)
	}
	go g.t.main()
}

// admit registers a detached task; false once Shutdown has been called.
func (r *root) admit(t *task) bool {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if r.closing {
		return false
	}
	r.s.linkLocked(t)
	return true
}

// detachedEnded keeps the error of a detached task for Shutdown.
func (r *root) detachedEnded(v verdict) {
	if v.err != nil {
		r.s.noteFailure(v.err)
	}
}

// Shutdown ends what is registered at the root of ctx: it refuses new detached
// tasks, waits for those there are, for root tasks and for stragglers until
// ctx is done, then cancels them with [ErrShutdown] and waits for their abort
// hooks and a moment longer. It returns the errors of detached tasks (the
// first 32) and, if somebody is left, a [*StragglerError] that names them.
// Scopes are not waited for, they have somebody who does; neither is the task
// that calls Shutdown.
func Shutdown(ctx context.Context) error {
	t, _ := nearest(ctx)
	r := ownerOf(t).home
	r.s.mu.Lock()
	r.closing = true
	r.s.mu.Unlock()

	r.waitFor(ctx.Done(), func() bool { return len(r.othersLocked(t)) == 0 })
	r.s.mu.Lock()
	left := r.othersLocked(t)
	r.s.mu.Unlock()
	if len(left) == 0 {
		return r.takeErrors(nil)
	}
	for _, o := range left {
		o.scope().cancel(canceled(ErrShutdown))
	}
	r.waitFor(nil, func() bool { return !r.hooksLocked() })
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	r.waitFor(grace.Done(), func() bool { return len(r.othersLocked(t)) == 0 })
	r.s.mu.Lock()
	left = r.othersLocked(t)
	r.s.mu.Unlock()
	if len(left) == 0 {
		return r.takeErrors(nil)
	}
	return r.takeErrors(newStragglerError("root", left, ErrShutdown))
}

// othersLocked returns whom Shutdown waits for: not scopes, and not what the
// caller is part of.
func (r *root) othersLocked(caller *task) []*task {
	return r.s.childrenLocked(func(t *task) bool { return t.kind != kindBody && !caller.partOf(t) })
}

// hooksLocked reports whether a hook of a child still runs.
func (r *root) hooksLocked() bool {
	for t := r.s.children; t != nil; t = t.next {
		if h := t.half.Load(); t.kind != kindBody && h != nil && h.hooking.Load() > 0 {
			return true
		}
	}
	return false
}

// stir wakes who waits for something to change.
func (r *root) stir() {
	r.s.mu.Lock()
	if r.s.changed != nil {
		close(r.s.changed)
		r.s.changed = nil
	}
	r.s.mu.Unlock()
}

// waitFor waits until ok, which is called with the lock held whenever
// something has changed, or until stop is closed.
func (r *root) waitFor(stop <-chan struct{}, ok func() bool) {
	for {
		r.s.mu.Lock()
		if ok() {
			r.s.mu.Unlock()
			return
		}
		if r.s.changed == nil {
			r.s.changed = make(chan struct{})
		}
		changed := r.s.changed
		r.s.mu.Unlock()
		select {
		case <-changed:
		case <-stop:
			return
		}
	}
}

// takeErrors returns the errors of detached tasks, each once, and left.
func (r *root) takeErrors(left error) error {
	r.s.mu.Lock()
	f := r.s.faults
	r.s.faults = nil
	r.s.mu.Unlock()
	if f == nil {
		return left
	}
	errs := f.errs
	if left != nil {
		errs = append(errs, left)
	}
	return joined(&r.t, errs, f.dropped)
}

// abandon ends the wait of a scope whose DetachAfter has passed. What is left
// of it is registered at the root until the last of it ends.
func (s *scope) abandon(err error, echo bool) verdict {
	e := s.stragglers()
	stand := &task{kind: kindLeft, owner: &s.home.s, more: &more{shielded: true}}
	stand.more.name = s.t.name()
	stand.half.Store(s)
	s.home.s.add(stand)

	s.takeUnclaimed()
	v := s.sum(err, echo)
	s.mu.Lock()
	over := s.live == 0
	if !over {
		s.left = stand
		if s.faults != nil && s.faults.alarm != nil {
			s.faults.alarm.Stop()
		}
		s.faults = nil // told now
	}
	s.mu.Unlock()
	if over { // the last one came home after all
		go s.bury(stand)
	}
	switch {
	case v.panic != nil:
		p := *v.panic
		p.others = join(p.others, e)
		return verdict{err: &p, panic: &p}
	case v.err == nil || v.echo:
		return verdict{err: e}
	default:
		return verdict{err: errors.Join(v.err, e)}
	}
}

// bury ends a scope that returned without its tasks, after the last of them.
func (s *scope) bury(stand *task) {
	s.takeUnclaimed()
	for s.runExits(nil, false) || !s.close() {
		s.join()
		s.takeUnclaimed()
	}
	if v := s.verdict(nil, false); v.err != nil && !v.echo {
		s.home.report(v.err)
	}
	s.home.s.leave(stand)
}
