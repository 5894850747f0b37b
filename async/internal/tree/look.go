package tree

import (
	"context"
	"reflect"
)

// This file is the look: what a scope holds, and what its task waits for, for those who draw a
// picture of the tree. A look takes one lock at a time, each briefly. It makes nothing, calls no
// code of users, and changes nothing, but that a scope that is looked at is given its number.

// MostSeen is how many members one call of LookAt comes by while a scope is locked.
const MostSeen = 256

// A View is what one call of LookAt has seen of a scope. The same View may be filled again and again.
type View struct {
	Members []Member // some of the members, the newest first
	Waits   Waits    // those of the task are added, in the first call of a look
	Parts   []any    // what other packages have registered with the scope, the latest first; at most [MostParts]

	Started   int64 // how many members there ever were
	Live      int   // how many there are, promises left out
	Unclaimed int   // failures of futures that nobody has been given
	Joins     bool  // a goroutine waits for the members
	Limits    bool  // the scope has brought a Limit; see LimitIn
}

// MostParts is how many parts of a scope one look tells of.
const MostParts = 32

// A Member is a task of a scope. Its ordinal grows with the order in which the members came.
type Member struct {
	Task    *Task
	Ordinal int64
}

// A Cursor says how far a look at a scope has come. The zero value has seen nothing.
type Cursor struct {
	begun    bool
	promises bool    // those are looked at, and all children were
	below    int64   // members with this ordinal or a greater one were seen, or are too new; 0: none
	anchors  []*Task // members on the way, the last one last: the look goes on behind the last that is still there
}

// LookAt has v show the inner scope of t as it is now, and returns whether there is more to be seen by
// another call with c. t has an inner scope of its own.
//
// One call sees one moment. Several see each member once that stays from the first to the last;
// one that comes or leaves meanwhile is seen or not.
func LookAt(t *Task, v *View, c *Cursor) (more bool) {
	s := t.Inner.Load()
	v.Members = v.Members[:0]
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if !c.begun {
		c.begun = true
		v.scopeLocked(s)
	}
	return c.membersLocked(s, v)
}

// LookAtEmpty is LookAt for a scope without members. It reports false, and has seen nothing, if there are any.
func LookAtEmpty(t *Task, v *View) (empty bool) {
	s := t.Inner.Load()
	s.Mu.Lock()
	if empty = s.children == nil && s.promises == nil; empty {
		v.scopeLocked(s)
	}
	s.Mu.Unlock()
	return empty
}

// scopeLocked shows all of s but its members.
func (v *View) scopeLocked(s *Scope) {
	v.Started, v.Live, v.Unclaimed = s.started, int(s.Live), s.Tally.Unclaimed()
	v.Joins, v.Limits = s.joiner != nil, s.opts != nil && s.opts.Limit != 0
	v.Waits.addLocked(s)
	v.partsLocked(s)
}

// HasScope reports whether t has an inner scope of its own, at which one can look.
func HasScope(t *Task) bool { return !isLeaf(t) }

// membersLocked adds the next members to v, and returns whether there are more.
func (c *Cursor) membersLocked(s *Scope, v *View) (more bool) {
	var last *Task
	next := c.nextLocked(s)
	for range MostSeen {
		if next == nil && c.promises {
			return false
		}
		if next == nil {
			last, next = nil, s.promises
			c.promises, c.below, c.anchors = true, 0, c.anchors[:0]
			continue
		}
		if c.below == 0 || next.ordinal < c.below {
			v.Members = append(v.Members, Member{next, next.ordinal})
			c.below = next.ordinal
		}
		last, next = next, next.next
	}
	if last != nil {
		c.anchors = append(c.anchors, last)
	}
	return true
}

// nextLocked returns the member at which the look goes on. If the last anchor has left, members
// come by again that were seen: their ordinals tell.
func (c *Cursor) nextLocked(s *Scope) *Task {
	for n := len(c.anchors); n > 0; n-- {
		if t := c.anchors[n-1]; t.next != nil || t.prev != nil || s.children == t || s.promises == t {
			c.anchors = c.anchors[:n]
			return t.next
		}
	}
	c.anchors = c.anchors[:0]
	if c.promises {
		return s.promises
	}
	return s.children
}

// partsLocked adds what other packages have registered with s.
func (v *View) partsLocked(s *Scope) {
	v.Parts = v.Parts[:0]
	for x := s.Exits; x != nil && len(v.Parts) < MostParts; x = x.next {
		if x.ender != nil {
			v.Parts = append(v.Parts, x.ender)
		}
	}
}

// NumberOf returns what s is called by, which is given by the first who asks. The process' root is
// number 1.
func NumberOf(s *Scope) int64 {
	n := s.number.Load()
	for n == 0 {
		s.number.CompareAndSwap(0, numbers.Add(1))
		n = s.number.Load()
	}
	return n
}

// numbers counts the scopes that have a number: those that somebody has looked at.
var numbers AtomicInt64

func init() { NumberOf(&process.Scope) } // the first

// NumbersOf returns what names t: the number of its owner, and its ordinal there. Both are 0 for a
// root. The caller runs in t, or has it from a look.
func NumbersOf(t *Task) (scope, ordinal int64) {
	if t.Owner == nil {
		return 0, 0
	}
	return NumberOf(t.Owner), t.ordinal
}

// ToldTo returns why t was told to stop, nil if it was not; owner is what it returns of t's owner. It
// makes nothing: of a cancellation that nobody has passed on, or asked for, it may not know.
func ToldTo(t *Task, owner *StopError) *StopError {
	if why := toldItself(t); why != nil {
		return why
	}
	if !t.cancelledWithOwner() {
		return nil
	}
	return owner
}

// ToldAround is ToldTo for a task whose owner was not looked at: it looks at all that is around t.
func ToldAround(t *Task) *StopError {
	for ; t != nil && t.Kind != KindRoot; t = t.Owner.TaskOrNil() {
		if why := toldItself(t); why != nil || !t.cancelledWithOwner() {
			return why
		}
	}
	return nil
}

func toldItself(t *Task) *StopError {
	if h := t.Inner.Load(); h != nil && !h.isShared() {
		if why := h.Why.Load(); why != nil && why != endedStop {
			return why
		}
	}
	return nil
}

// Sought reports whether anybody waits for f, or watches its Done.
func (f *Future) Sought() bool {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return f.waiters != nil || f.Wanted.Load() > 0
}

// Called returns the name of t within its owner, and the address of its function, 0 if that is none of
// a user's.
func Called(t *Task) (name string, pc uintptr) {
	n := t.Naming()
	pc = n.pc
	if pc == 0 && t.Self != nil { // it has another name, beside that of its function
		if v := reflect.ValueOf(t.Self.Func()); v.Kind() == reflect.Func {
			pc = v.Pointer()
		}
	}
	if t.Kind == KindHook {
		pc = 0
	}
	if n.given != "" {
		return n.given, pc
	}
	return n.label, pc
}

// LeftBehind reports whether the scope of t has returned without its tasks: then it may be met twice.
func LeftBehind(t *Task) bool { return t.Inner.Load().leftTasks.Load() }

// MayHang reports whether t cannot settle without any of what was started in it.
func MayHang(t *Task) bool { return mayHang(t) }

var kindNames = [...]string{"go", "future", "promise", "scope", "hook", "run", "detached", "left", "choice", "fork",
	"contender", "worker", "group", "root"}

// String returns what a picture calls it.
func (k Kind) String() string { return kindNames[k] }

// IsUnnamedLeaf reports whether ctx is that of a task which was given no name, and has started and
// awaited nothing.
func IsUnnamedLeaf(ctx context.Context) bool {
	t, ok := ctx.(*Task)
	return ok && t.Naming().given == "" && isLeaf(t)
}
