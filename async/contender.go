package async

import (
	"time"

	"github.com/ambit-go/ambit/async/internal/tree"
)

// This file is the data of a choice and its contenders: how one that has ended offers itself to
// be judged, and what becomes of it when the choice is decided. Every value is given to
// somebody or discarded.

// A contender is one task of a choice.
type contender[T any] struct {
	job[T]
	c       contest[T]
	index   int
	v       tree.Verdict
	judged  bool    // the rule has been told of it
	chosen  bool    // the outcome of the choice speaks of it
	discard func(T) // set by Discarding, on the handler's goroutine
	next    *contender[T]
}

// contest is what a contender knows of its choice.
type contest[T any] interface {
	offer(k *contender[T]) (decided bool)
	judgeQueued() (decided bool)
	dismissRest()
	ended()
}

func (k *contender[T]) Future() *tree.Future { return nil } // nobody can wait for it alone

// Run is the body of the contender's goroutine.
func (k *contender[T]) Run() {
	defer k.finish() // also on Goexit
	k.call()
	tree.NilPanic(&k.f.Task.Exit)
}

// finish joins what the contender has started and has its outcome judged. A
// value beside an error of what it has started is given to nobody.
func (k *contender[T]) finish() {
	defer k.f.Task.Rescue()
	returned := k.f.Task.Exit == tree.ByReturn && k.f.Err == nil
	stop := k.f.Task.End(k.f.Err, &k.v)
	tree.TellEnd(&k.f.Task, &k.v, stop)
	if returned && k.v.Err != nil {
		k.discardValue()
	}
	k.leave()
}

// isChosenValue reports whether a value of k is in the outcome and has a hook.
func (k *contender[T]) isChosenValue() bool { return k.chosen && k.v.Err == nil && k.discard != nil }

// discardValue gives the value to the hook of Discarding, if there is one. A failure of the hook
// is told to the scope that the choice belongs to.
func (k *contender[T]) discardValue() {
	if k.discard == nil {
		return
	}
	value := held[T]{k.value, k.discard, k.f.Task.Name()}
	k.value = *new(T)
	k.f.Task.Retire() // the hook is no part of the handler
	if err := value.Discard(); err != nil {
		k.f.Task.Owner.Task.Owner.RecordHookError(err)
	}
}

// Unrun ends a contender that never ran.
func (k *contender[T]) Unrun(v *tree.Verdict) {
	k.v = *v
	k.leave()
}

func (k *contender[T]) leave() {
	for decided := k.c.offer(k); decided; decided = k.c.judgeQueued() {
		k.f.Task.Owner.Cancel(decidedStop) // from here: deeper down the stack has to grow for it
		k.c.dismissRest()
	}
	k.f.Task.Move(tree.StateDone)
	k.f.Task.Leave()
	k.c.ended()
}

// A choice is decided by its rule, once. T is what its contenders return, R what
// the choice gives.
type choice[T, R any] struct {
	job[R]
	name  string
	rule  rule[T, R]
	s     tree.Scope // of the contenders; the inner scope of the choice's own task
	m     tree.More
	all   []contender[T] // in the order of the arguments; of a Hedge some may never start
	delay time.Duration  // between the starts of contenders; 0: start all at once

	// Only the goroutine that judges uses these, and the rule, which it calls. The change from one
	// that stops judging and another starts is ordered by mu.
	v       tree.Verdict // the outcome
	settled int          // how many contenders the rule has been told of
	good    int          // how many of them have succeeded

	mu          tree.Mutex    // guards what follows; no other lock is taken under it
	first, last *contender[T] // the queue of those that have ended and were not judged
	// judging: some goroutine works on the queue, and will look at it again before
	// it stops. So what is queued while it is set is judged, and two never judge.
	judging bool
	// decided is set once, by the goroutine that judges, before the future settles.
	decided bool
	// frozen: no more are started, because the choice was cancelled. Then started is
	// how many there will have been.
	frozen  bool
	started int
	judged  int         // how many the rule has been told of, and has not decided
	live    int         // how many have been started and have not ended
	timer   *time.Timer // starts the next
}

// decidedStop is why losers are cancelled.
var decidedStop = tree.Canceled(ErrDecided)

// A rule is told of the contenders' outcomes one by one, never by two
// goroutines at once. It reports whether the choice is decided now. If so it
// sets value and v, and marks the contenders that the outcome speaks of as
// chosen. It is an interface, and not a function, because a function that is
// generic is allocated.
type rule[T, R any] interface {
	judge(c *choice[T, R], last *contender[T]) (decided bool)
}

// promiseValues decides what becomes of chosen values that have a discard hook.
// If a waiter was told of an expiry before, nobody is given them, and the choice
// settles with what that waiter was told. Else they are kept for the waiter that
// is given the outcome: if there is none, they are discarded, see Future.unclaimed in
// tree/settle.go.
func (c *choice[T, R]) promiseValues() {
	expiry := c.f.PromiseValue()
	hooked := false
	for i := range c.all {
		hooked = hooked || c.all[i].isChosenValue()
	}
	switch {
	case !hooked:
	case expiry == nil:
		c.keepValues()
	default:
		for i := range c.all {
			c.all[i].chosen = false
		}
		c.value, c.v = *new(R), tree.Verdict{Err: expiry}
	}
}

// keepValues keeps the outcome with the hooks of what is in it. The owner is
// told if one fails. c itself must not be kept: a root task's values are
// discarded when that is collected.
func (c *choice[T, R]) keepValues() {
	var values []tree.Discarded
	for i := range c.all {
		if k := &c.all[i]; k.isChosenValue() {
			values = append(values, &held[T]{k.value, k.discard, k.f.Task.Name()})
		}
	}
	owner := c.f.Task.Owner
	discard := func(R) {
		for _, value := range values {
			if err := value.Discard(); err != nil {
				owner.RecordHookError(err)
			}
		}
	}
	c.v.Value = &held[R]{c.value, discard, c.f.Task.Name()}
	c.value = *new(R)
}

// dismissRest deals with the contenders that were judged and that the outcome
// does not speak of.
func (c *choice[T, R]) dismissRest() {
	for i := range c.all {
		if k := &c.all[i]; k.judged && !k.chosen {
			c.dismiss(k)
		}
	}
}

// dismiss deals with a contender that the outcome does not speak of: its error is
// dropped, its value discarded, and a panic or Goexit is the scope's.
func (c *choice[T, R]) dismiss(k *contender[T]) {
	owner := c.f.Task.Owner
	switch {
	case k.v.MustRaise() && owner.Task.Kind == tree.KindRoot:
		owner.Home.Report(k.v.Err)
	case k.v.MustRaise():
		owner.RecordOutcome(&k.v, false)
	case k.v.Err == nil:
		k.discardValue()
	}
}
