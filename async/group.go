package async

import (
	"context"
	"slices"

	"github.com/ambit-go/ambit/async/internal/tally"
	"github.com/ambit-go/ambit/async/internal/tree"
)

// A Group is a scope without a body, for types with a Start and a Stop: work is started in it
// from anywhere, at any time, until somebody ends it with [Group.Stop] or [Group.Wait]. A group
// that is empty goes on, and a group that has ended is not started again: make another. A Group is
// made by [NewGroup]; methods of a nil or zero Group panic. Any number of goroutines may use one.
//
//	type Server struct{ group *async.Group }
//
//	func Start(ctx context.Context) *Server {
//		s := &Server{async.NewGroup(ctx, async.Name("server"))}
//		_ = s.group.Go(s.loop)
//		return s
//	}
//
//	func (s *Server) Stop(ctx context.Context) error { return s.group.Stop(ctx, errStopped) }
//
// A group is a member of the scope that it was made in until it has ended, empty or not.
// Whoever made it stops it. The end of that scope dismisses the group: once the body and the
// other tasks have ended, the group is cancelled with [ErrDismissed] and joined, and whatever
// runs in it is cut off. A dismissal is not quiet: the scope fails, and the error names the group and
// the tasks. Only what was started as a [Daemon] is dismissed without a word.
//
// The first failure of a [Go] task cancels the group, a panic does so at once. A failure is
// given to those who call Stop or Wait, a panic by raising it in one of them. If nobody has
// called either by then, it is a failure, or a panic, of the scope that the group was made in,
// at the end of that. A group at the root tells the root when the group ends, or 10 s after the
// failure if nobody waits by then.
//
// The need is that of Temporal's goro.Group and of tomb; that only Stop and Wait end
// a group is from the TaskTracker of tokio.
type Group struct {
	f tree.Future // its task, and the waits for its end
	s tree.Scope
	m tree.More

	raised tree.AtomicBool // a waiter has raised its panic

	// These are guarded by s.Mu.
	opening bool // NewGroup has not returned; what closes the group meanwhile is done then
	closing bool // told to end
	// asked are the causes of the calls of Cancel and Stop that may have cancelled it.
	// If one has, that is no news to the owner.
	asked    []error
	cut      cutOffError // what the owner's end has cut off
	reported []error     // failures that the root was told of while the group went on
}

// NewGroup returns a group that belongs to the scope of ctx; without one to the root,
// and [Shutdown] ends it.
//
//	s.group = async.NewGroup(ctx) // in Start
//	err := s.group.Stop(ctx, nil) // in Stop
//
// # Details
//
// On a scope that has ended the group has ended, too. NewGroup never blocks, and
// starts no goroutine.
//
// The context of the group is a child of ctx: it has the values of ctx and is
// cancelled with its cause. The time of [Timeout] begins with NewGroup. A nil ctx
// panics.
func NewGroup(ctx context.Context, opts ...ScopeOption) *Group {
	o := newScopeOptions(opts)
	g := new(Group)
	t, s := &g.f.Task, &g.s
	t.Self, t.Kind, t.Exit = (*grouping)(g), tree.KindGroup, tree.ByReturn
	if o != nil {
		g.m.Name, g.m.Timeout = o.Name, o.Timeout
		g.m.StopBy(o.Stops)
	}
	tree.StandIn(s, ctx, t, &g.m)
	if o != nil {
		tree.SetOptions(s, o)
	}
	g.opening = true
	if !tree.Enroll(s) {
		s.Ended = true
		g.f.SettleUnowned(nil)
		return g
	}
	if o != nil {
		tree.StartClocks(s)
	}
	tree.TellStart(t)
	(*grouping)(g).open()
	return g
}

// Open is the former name of [NewGroup].
//
// Deprecated: Use [NewGroup].
//
//go:fix inline
func Open(ctx context.Context, opts ...ScopeOption) *Group { return NewGroup(ctx, opts...) }

// Context returns the context of the group, which is the scope: [Go], [Execute],
// [OnExit] and all the rest work with it and with what is derived from it.
//
//	news := async.Execute(group.Context(), fetchNews)
//
// # Details
//
// The context is cancelled when the group is: by the ctx that the group was made with,
// by Cancel and Stop, by a failure, and by [Timeout]. When the group has ended it is
// done with [ErrScopeEnded].
func (g *Group) Context() context.Context { return &g.made("Context").f.Task }

// Go starts task in the group, as [Go] does with the group's context, and returns nil,
// or [ErrScopeEnded] once the group has ended.
//
//	err := group.Go(func(ctx context.Context) error { return serve(ctx, conn) })
//
// # Details
//
// With nil task will be called, with an error it is not. Beside a call of Stop or Wait
// it does one or the other: what it has started is joined by that call. In a group
// that is cancelled and has not ended task is called with a context that is done,
// unless it queues for a [Limit]: then it is withdrawn, as with [Go]. Go never blocks,
// but for an executor ([On]) that does. A nil task panics.
func (g *Group) Go(task func(ctx context.Context) error, opts ...TaskOption) error {
	if task == nil {
		panic("async: Group.Go with a nil function: pass what is to be called")
	}
	t := &g.made("Go").f.Task
	n := &tree.GoTask{Handler: task}
	n.Task.Self, n.Task.Kind = n, tree.KindGo
	// A group may have settled without its tasks, see DetachAfter: these may go on in its scope.
	if g.f.Settled() || !start(&n.Task, t.Scope(), nil, opts) {
		return tree.LateStart(t, n.Task.Naming().In(nil))
	}
	return nil
}

// made returns g. It panics if there is none, because op was called on a nil Group
// or on one that NewGroup has not made.
func (g *Group) made(op string) *Group {
	switch {
	case g == nil:
		panic("async: " + op + " of a nil Group: it is NewGroup that returns one")
	case g.f.Task.Self == nil:
		panic("async: " + op + " of a zero Group: it has no scope; use what NewGroup returns")
	}
	return g
}

// A grouping is a Group as the engine sees it: its methods are not for users.
type grouping Group

// open is called when observers were told that g has started. The owner may end meanwhile.
func (g *grouping) open() {
	g.s.Mu.Lock()
	g.opening = false
	closed := g.closing
	g.closing = false
	g.s.Mu.Unlock()
	if closed {
		g.Close()
	}
}

// Close has g end when all that was started in it has. It does that once, and does not wait. No
// goroutine stands behind a group before: the first call starts one, unless there is nothing to
// wait for.
func (g *grouping) Close() {
	s := &g.s
	s.Mu.Lock()
	if g.closing || s.Ended {
		s.Mu.Unlock()
		return
	}
	g.closing = true
	if g.opening {
		s.Mu.Unlock()
		return
	}
	// A Go comes before, and its task is counted; or after, and finds that s has ended
	// or is joined.
	quick := s.Live == 0 && s.Exits == nil && s.Tally == nil
	s.Ended = quick
	s.Mu.Unlock()
	if quick {
		g.end()
	} else {
		go g.end()
	}
}

// end joins the tasks of g, and settles g. It does not block if g.s has ended.
func (g *grouping) end() {
	if tree.Exploring {
		defer tree.Starts("group", &g.f.Task)()
	}
	t := &g.f.Task
	var v tree.Verdict
	g.s.Finish(tree.ByReturn, nil, &v)
	tree.TellEnd(t, &v, g.s.StopBeforeEnd())
	g.s.Mu.Lock()
	asked := v.Echo && g.wasAskedLocked(v.Cause)
	g.s.Mu.Unlock()
	if asked {
		g.f.Mu.Lock()
		g.f.HolderTold = true
		g.f.Mu.Unlock()
	}
	g.f.Settle(&v, false)
}

// wasAskedLocked reports whether cause, for which g was cancelled, is that of a Cancel
// or Stop. The scope of g is locked.
func (g *grouping) wasAskedLocked(cause error) bool {
	return slices.ContainsFunc(g.asked, func(asked error) bool { return tally.Same(asked, cause) })
}
