package async

import (
	"context"
	"runtime"
)

// A Group is a scope without a body, for types with a Start and a Stop: work is
// started in it from anywhere, at any time, until somebody ends it with [Group.Stop]
// or [Group.Wait]. That it is empty does not end it, and a group that has ended is
// not started again: open another. A Group is made by [Open]; methods of a nil or
// zero Group panic. Any number of goroutines may use one.
//
//	type Server struct{ group *async.Group }
//
//	func Start(ctx context.Context) *Server {
//		s := &Server{async.Open(ctx, async.Name("server"))}
//		_ = s.group.Go(s.loop)
//		return s
//	}
//
//	func (s *Server) Stop(ctx context.Context) error { return s.group.Stop(ctx, errStopped) }
//
// A group belongs to the scope that it was opened in, as a task does. With tasks in
// it, it keeps that scope from ending, and [OnStall] names it, unless it was opened
// with [Daemon]. Without tasks it holds nobody up, and ends with that scope. One
// without tasks that nobody holds any more, and at whose end nothing is to be done,
// is forgotten before: observers are not told of its end.
//
// The first failure of a [Go] task cancels the group, a panic does so at once. What
// has failed is given to those who call Stop or Wait, a panic by raising it in one
// of them. If nobody has called either by then, it is a failure, or a panic, of the
// scope that the group was opened in, at the end of that; a group at the root that
// nobody holds any more tells the root.
//
// The need is that of Temporal's goro.Group and of tomb; that only Stop and Wait end
// a group is from the TaskTracker of tokio.
type Group struct {
	f future // its task, and the waits for its end
	s scope
	m more

	place   *place          // where it is while it has no tasks
	cleanup runtime.Cleanup // takes place off the owner when nobody holds g any more

	raised atomicBool // a waiter has raised its panic

	closing bool // told to end; guarded by s.mu
	// asked are the causes of the calls of Cancel and Stop that may have cancelled it.
	// If one has, that is no news to the owner. Guarded by s.mu.
	asked []error
}

// An OpenOption changes how a group is run: the options of scopes are some, and
// [Daemon]. Later options win over earlier ones.
type OpenOption interface{ applyOpen(*groupOptions) }

// groupOptions are the settings of one group; the zero value is the default.
type groupOptions struct {
	scopeOptions
	daemon bool
}

// Open returns a group that belongs to the scope of ctx; without one to the root,
// and [Shutdown] ends it. On a scope that has ended the group has ended, too. Open
// never blocks, and starts no goroutine.
//
// The context of the group is a child of ctx: it has the values of ctx and is
// cancelled with its cause. What [Timeout] sets begins with Open. A nil ctx panics.
func Open(ctx context.Context, opts ...OpenOption) *Group {
	o := new(groupOptions)
	for _, opt := range opts {
		mustNotBeNil(opt)
		opt.applyOpen(o)
	}
	g := new(Group)
	t, s := &g.f.t, &g.s
	t.self, t.kind, t.exit = g, kindGroup, byReturn
	g.m.name, g.m.timeout, g.m.daemon, g.m.stopOn = o.name, o.timeout, o.daemon, o.stopOn
	s.standIn(ctx, t, &g.m)
	s.setOptions(&o.scopeOptions)
	if !g.enroll() {
		g.f.settleUnowned(nil)
		return g
	}
	s.startClocks()
	t.observe()
	return g
}

// Context returns the context of the group, which is the scope: [Go], [Execute],
// [OnExit] and all the rest work with it and with what is derived from it. It is
// cancelled when the group is: by the ctx that the group was opened with, by Cancel
// and Stop, by a failure, and by [Timeout]. When the group has ended it is done with
// [ErrScopeEnded].
func (g *Group) Context() context.Context { return &g.made("Context").f.t }

// Go starts task in the group, as [Go] does with the group's context, and returns
// nil: task will be called. It returns [ErrScopeEnded], and task is not called, once
// the group has ended. Beside a call of Stop or Wait it does one or the other: what
// it has started is joined by that call. In a group that is cancelled and has not
// ended task is called with a context that is done, unless it queues for a [Limit]:
// then it is withdrawn, as with [Go]. Go never blocks, but for an executor ([On])
// that does. A nil task panics.
func (g *Group) Go(task func(ctx context.Context) error, opts ...TaskOption) error {
	if task == nil {
		panic("async: Group.Go with a nil function: pass what is to be called")
	}
	t := &g.made("Go").f.t
	if g.f.settled() { // perhaps without its tasks, see DetachAfter: these may go on in its scope
		return lateStart(t)
	}
	n := &goTask{handler: task}
	n.t.self, n.t.kind = n, kindGo
	if !n.t.start(t.scope(), nil, opts) {
		return lateStart(t)
	}
	return nil
}

// Cancel cancels the group with cause (nil: [context.Canceled]) and does not wait:
// the way to stop it from inside. The group does not end by that. Cancel reports
// whether it was the first to cancel the group.
//
// The caller has been told: that tasks were kept from being done is no failure of
// the scope that the group was opened in. Other failures are.
func (g *Group) Cancel(cause error) bool {
	g.made("Cancel")
	if cause == nil {
		cause = context.Canceled
	}
	if g.f.t.stopped() != nil {
		return false
	}
	g.s.mu.Lock()
	g.asked = append(g.asked, cause) // before the cancel: g may have ended after it
	g.s.mu.Unlock()
	return g.s.cancel(canceled(cause))
}

// Stop is [Group.Cancel], then [Group.Wait]: when it has returned, nothing of the
// group runs any more, and nothing will, but for what [DetachAfter] has let go. It may be called any number of times, by
// any number of goroutines, before anything was started, and when the group has
// ended: every call returns the same outcome.
//
// It returns nil if nothing was lost to it: every task ended well, whether or not it
// was told to stop. A task that returned nothing but why it was told to stop has
// not: then there is a [*ScopeError] with that as its Cause. Tasks that serve until
// they are stopped return nil then, or are started as a [Daemon].
//
// ctx bounds the wait only. When it ends Stop returns an error that matches its
// cause and is a [*StragglerError] that names who is left, too; the group ends when
// these have, and a later Stop waits for that. With the context of a task of the
// group, of what that has started, or of the group itself Stop cancels the group,
// which then ends by itself, and returns [ErrAwaitCycle].
func (g *Group) Stop(ctx context.Context, cause error) error {
	inside := g.made("Stop").waitInside(ctx) // asked now: ctx is done after the cancel if it is inside
	g.Cancel(cause)
	g.close(false)
	if inside != nil {
		return inside
	}
	return g.await(ctx)
}

// Wait waits until everything that was started in the group has ended, its exit
// hooks included. Then the group has ended: nothing can be started in it. It may be
// called any number of times, by any number of goroutines; every call returns the
// same outcome: what [Scope] would return whose body has returned nil. The first
// call of Wait or Stop counts as the end of the body: once the other tasks have
// ended, daemons are told to.
//
// A panic of a task is raised as a [*PanicError] by one of the waits, and returned
// by the others. ctx bounds the wait only, as in [Group.Stop], and the task of ctx
// is the one that waits: it lends its slot of a [Limit]. If that is part of the
// group, Wait returns [ErrAwaitCycle] and does nothing else.
func (g *Group) Wait(ctx context.Context) error {
	if inside := g.made("Wait").waitInside(ctx); inside != nil {
		return inside
	}
	g.close(false)
	return g.await(ctx)
}

// made returns g. It panics if there is none, because op was called on a nil Group
// or on one that Open has not made.
func (g *Group) made(op string) *Group {
	switch {
	case g == nil:
		panic("async: " + op + " of a nil Group: it is Open that returns one")
	case g.f.t.self == nil:
		panic("async: " + op + " of a zero Group: it has no scope; use what Open returns")
	}
	return g
}
