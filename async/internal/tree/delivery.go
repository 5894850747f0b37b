package tree

import (
	"fmt"

	"github.com/ambit-go/ambit/async/internal/crash"
	"github.com/ambit-go/ambit/internal/bridge"
)

// This file is about running tasks elsewhere than on goroutines of their own.

// Decide reports whether the caller is the first to decide.
func (d *Delivery) Decide() bool { return d.decided.CompareAndSwap(false, true) }

// deliver hands t, which has its slot, to its executor. It blocks until that has
// taken or refused it.
func deliver(t *Task) {
	if Exploring {
		defer Starts("deliver", t)()
	}
	if d := t.More.Delivery; isWanted(t) && !d.try(t) {
		d.submit(t)
	}
}

// launch hands t to its executor and returns when that has taken or refused it,
// or t is cancelled.
func launch(t *Task) {
	beFindable(t)
	if !isWanted(t) || t.More.Delivery.try(t) {
		return
	}
	// On another goroutine, because Execute may block for longer than we want
	// to wait, and may run t itself, which may call Goexit.
	w := NewWaiter()
	go func() {
		if Exploring {
			defer Starts("submit", t)()
		}
		defer w.notify(gotSettled)
		t.More.Delivery.submit(t)
	}()
	if h := t.Scope(); h.listen(w) {
		w.Park()
		h.delist(w)
	}
}

// isWanted looks at the context of t, skips t if that is done, and reports
// whether it is not.
func isWanted(t *Task) bool {
	stop := t.Stopped()
	if stop != nil {
		t.skipIfQueued(stop)
	}
	return stop == nil
}

// function returns what the executor is given to run t. Only its first call does
// anything.
func (d *Delivery) function(t *Task) func() {
	return func() {
		if !d.begun.CompareAndSwap(false, true) {
			return
		}
		awaitSlot(t)
		if isWanted(t) && d.Decide() {
			t.Main()
		}
	}
}

// try offers t to an executor that need not block, if it is one.
func (d *Delivery) try(t *Task) (taken bool) {
	if d.Executor == nil {
		d.function(t)()
		return true
	}
	ex, can := d.Executor.(interface{ TryExecute(task func()) bool })
	if !can {
		return false
	}
	failed := d.ask(t, func() error { taken = ex.TryExecute(d.function(t)); return nil })
	return taken || failed
}

// submit gives t to the executor and blocks until that has taken or refused it.
func (d *Delivery) submit(t *Task) {
	d.ask(t, func() error { return d.Executor.Execute(d.function(t)) })
}

// ask calls the executor. If that returns an error, panics or calls Goexit, t
// is rejected, unless it has begun to run all the same.
func (d *Delivery) ask(t *Task, call func() error) (failed bool) {
	exit := ByGoexit
	var err error
	defer func() {
		v := recover()
		switch {
		case exit == ByReturn:
		case v != nil:
			err = Trap(t, v)
		default:
			err = ErrGoexit
		}
		failed = err != nil
		switch {
		case !failed:
		case d.Decide():
			Reject(t, err)
		case v != nil:
			// Not of t, which has begun or ended: it is not for us to hide.
			if _, worker := d.Executor.(bridge.Withdrawer); worker { // of what ran beside t
				panic(v)
			}
			panic(MisusedExecutor(t, v))
		}
	}()
	err = call()
	exit = ByReturn
	return false // or what the deferred function says
}

// MisusedExecutor returns what is panicked with when the executor of t has taken t and
// then panicked with value.
func MisusedExecutor(t *Task, value any) error {
	const text = "async: misuse: the executor has taken %s and then panicked, which nobody can be told: "
	if err, ok := value.(error); ok {
		return fmt.Errorf(text+"%w", t.Name(), err)
	}
	return fmt.Errorf(text+"%v", t.Name(), crash.Text(value))
}

// skip settles t, which was cancelled because of stop before it ran. The cause is
// the one that was seen when that was decided: to look again may find none yet,
// if an inner scope is being made.
func skip(t *Task, stop *StopError) {
	t.EndUnrun()
	if d := t.More.Delivery; d != nil {
		if x, ok := d.Executor.(bridge.Withdrawer); ok {
			x.Withdraw(bridge.Token{})
		}
	}
	RecordSkipped(t.Owner)
	v := stop.verdict()
	tellSkipped(t, &v)
	t.Self.Unrun(&v)
}

// Reject settles t, which its executor has refused.
func Reject(t *Task, err error) {
	t.EndUnrun()
	v := Verdict{Err: Codec.Rejected(t.Name(), err)}
	tellSkipped(t, &v)
	t.Self.Unrun(&v)
}
