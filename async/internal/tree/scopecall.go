package tree

import (
	"context"
	"runtime"
	"slices"
)

// This file is about calls of Scope and Shield: scopes whose handler, the body, runs on the
// goroutine of the caller.

// callerScope is the task of a call and its inner scope in one piece.
type callerScope struct {
	t Task
	s Scope
}

// OpenScope makes a scope for a body that is to run on this goroutine. The goroutine is alive,
// so the body may run although the scope of ctx has ended:
// it stands at the root then. The error is not nil if ctx is done, too, and the
// body is not shielded from that.
func OpenScope(ctx context.Context, o *ScopeOptions, shielded bool) (*Scope, error) {
	outer, given := Nearest(ctx)
	owner := OwnerOf(outer)
	s := NewCallerScope(owner, given, o, shielded)
	if !Enroll(s) {
		// The context of a scope that has ended is done, or about to be.
		if !shielded && (given == nil || ctx.Err() != nil || endsWith(owner, ctx)) {
			return nil, LateStart(outer, "a Scope in it")
		}
		s = NewCallerScope(&outer.Home().Scope, ctx, o, shielded)
		Enroll(s) // a root does not end
	}
	if o != nil {
		StartClocks(s)
	}
	return s, nil
}

// StartClocks is called when s, which has options, is open: from here on its time limit
// and its stoppers count.
func StartClocks(s *Scope) {
	if s.opts.Timeout != 0 {
		s.LimitTime(s.opts.Timeout)
	}
	s.Task.WatchStops()
}

// NewCallerScope returns the scope of a call whose owner is to be owner. ctx is nil if
// it is opened with the owner's own.
func NewCallerScope(owner *Scope, ctx context.Context, o *ScopeOptions, shielded bool) *Scope {
	b := new(callerScope)
	t, s := &b.t, &b.s
	t.Kind, t.Owner = KindScope, owner
	if ctx != nil || shielded || o != nil || owner.Observers != nil {
		t.More = &More{shielded: shielded}
		if o != nil {
			t.More.Name, t.More.Timeout = o.Name, o.Timeout
			t.More.StopBy(o.Stops)
		}
		t.setOrigin(ctx)
	}
	s.Task = t
	s.inherit(owner)
	s.slot = owner.slot // it runs on the same goroutine
	if o != nil {
		SetOptions(s, o)
	}
	t.Inner.Store(s)
	return s
}

// SetOptions is called when s is made, after it has inherited what its owner has.
func SetOptions(s *Scope, o *ScopeOptions) {
	s.opts = o
	outer := s.Limit
	if o.Limit > 0 {
		s.Limit = newLimiter(o.Limit, outer)
	}
	if outer != nil && s.Limit == outer && o.detaches() {
		s.Limit = layerIn(outer)
	}
	if o.On != nil {
		s.On = o.On
	}
	for _, one := range slices.Backward(o.Observers) {
		s.Observers = s.Observers.and(one, guarded)
	}
	if o.Profile != nil {
		s.Observers = s.Observers.and(o.Profile, guarded)
	}
}

// Enroll makes the task of s, which has its inner scope from the first, a
// member of its owner; false if that has ended.
func Enroll(s *Scope) bool {
	t := s.Task
	if !t.Owner.Add(t) {
		return false
	}
	s.listenAbove()
	return true
}

// OpenWithoutHandler makes s the scope of t, which no handler stands behind but
// what is started in s, and t a member of the scope of ctx; an error if that has
// ended.
func OpenWithoutHandler(s *Scope, ctx context.Context, t *Task, m *More) error {
	outer := StandIn(s, ctx, t, m)
	if !Enroll(s) {
		return LateStart(outer, t.Naming().In(nil))
	}
	return nil
}

// StandIn makes s the scope of t, which nothing knows of yet and no handler stands
// behind. It returns the task that ctx belongs to.
func StandIn(s *Scope, ctx context.Context, t *Task, m *More) (outer *Task) {
	outer, ctx = Nearest(ctx)
	owner := OwnerOf(outer)
	t.Owner, t.More = owner, m
	t.setOrigin(ctx)
	s.Task = t
	s.inherit(owner)
	t.Inner.Store(s)
	return outer
}

// RunScope is Scope and Shield.
func RunScope(ctx context.Context, body func(context.Context) error, o *ScopeOptions, shielded bool) (err error) {
	s, err := OpenScope(ctx, o, shielded)
	if err != nil {
		return err
	}
	TellStart(s.Task)
	r := ScopeCall{Scope: s}
	defer r.End(&err) // also on Goexit, which stays one
	r.call(s.Task, body)
	NilPanic(&r.Exit)
	return nil // replaced by End
}

// A ScopeCall is one call of Scope or Shield, or of what stands for such.
type ScopeCall struct {
	Scope  *Scope
	Exit   ExitKind
	Err    error // what the body returned, or its *PanicError
	raised bool  // the scope has ended in the frame in which its body panicked
}

// call calls the body. A panic of it goes on as it was, after everything else
// has ended: the scope is joined here, in the deferred call that has recovered
// it, so the frames it came from are still below when it is raised again. A body that called Goexit
// is known from not coming back.
func (r *ScopeCall) call(t *Task, body func(context.Context) error) {
	defer func() {
		if value := recover(); value != nil {
			r.Exit, r.Err = ByPanic, Trap(t, value)
			r.Raise(value)
		} else if r.Exit != ByReturn {
			r.Err = Trap(t, nil) // see Caught
		}
	}()
	r.Err = body(t)
	runtime.KeepAlive(t) // so that a traceback prints it, see look.For
	r.Exit = ByReturn
}

// Raise ends the scope of a body that has panicked with value, and panics: with
// the same value, or with the panic of a task if that came first.
func (r *ScopeCall) Raise(value any) {
	r.raised = true
	var v Verdict
	r.Scope.Finish(r.Exit, r.Err, &v)
	r.Leave(&v)
	thrown := Codec.PanicIn(r.Err)
	if v.Panic.identity != thrown.identity {
		panic(v.Panic.Raise())
	}
	// The value cannot tell what went wrong beside it.
	if beside := Joined(r.Scope.Task, v.Panic.Also[len(thrown.Also):], v.Panic.Dropped-thrown.Dropped); beside != nil {
		r.Scope.Home.Report(beside)
	}
	panic(value)
}

// End joins what the body has started and turns the outcome into what Scope
// returns, or panics.
func (r *ScopeCall) End(err *error) {
	if r.raised {
		return
	}
	if r.Exit == ByGoexit {
		r.Err = ErrGoexit
	}
	var v Verdict
	defer r.Rescue()
	r.Scope.Finish(r.Exit, r.Err, &v)
	r.Leave(&v)
	if v.Panic != nil {
		panic(v.Panic.Raise())
	}
	if r.Exit == ByGoexit && v.Err != error(ErrGoexit) { // there is nobody to return it to
		r.Scope.Home.Report(v.Err)
	}
	*err = v.Err
}

// Rescue is [Task.Rescue] for a body, whose goroutine is the caller's.
func (r *ScopeCall) Rescue() {
	if t := r.Scope.Task; t.State.Load() != StateDone {
		t.EndUnrun()
		t.Move(StateDone)
		t.Leave()
	}
}

// Leave ends the membership of the scope, which has ended with v.
func (r *ScopeCall) Leave(v *Verdict) {
	t := r.Scope.Task
	TellEnd(t, v, r.Scope.StopBeforeEnd())
	t.Move(StateDone)
	t.Leave()
}
