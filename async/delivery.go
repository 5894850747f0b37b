package async

import (
	"fmt"

	"github.com/ambit-go/ambit/async/internal/crash"
	"github.com/ambit-go/ambit/internal/bridge"
)

// This file is about running tasks elsewhere than on goroutines of their own.

// decide reports whether the caller is the first to decide.
func (d *delivery) decide() bool { return d.decided.CompareAndSwap(false, true) }

// deliver hands t, which has its slot, to its executor. It blocks until that has
// taken or refused it.
func deliver(t *task) {
	if exploring {
		defer starts("deliver", t)()
	}
	if d := t.more.delivery; isWanted(t) && !d.try(t) {
		d.submit(t)
	}
}

// launch hands t to its executor and returns when that has taken or refused it,
// or t is cancelled.
func launch(t *task) {
	beFindable(t)
	if !isWanted(t) || t.more.delivery.try(t) {
		return
	}
	// On another goroutine, because Execute may block for longer than we want
	// to wait, and may run t itself, which may call Goexit.
	w := newWaiter()
	go func() {
		if exploring {
			defer starts("submit", t)()
		}
		defer w.notify(gotSettled)
		t.more.delivery.submit(t)
	}()
	if h := t.scope(); h.listen(w) {
		w.park()
		h.delist(w)
	}
}

// isWanted looks at the context of t, skips t if that is done, and reports
// whether it is not.
func isWanted(t *task) bool {
	sg := t.stopped()
	if sg != nil {
		t.skipIfQueued(sg)
	}
	return sg == nil
}

// function returns what the executor is given to run t. Only its first call does
// anything.
func (d *delivery) function(t *task) func() {
	return func() {
		if !d.begun.CompareAndSwap(false, true) {
			return
		}
		awaitSlot(t)
		if isWanted(t) && d.decide() {
			t.main()
		}
	}
}

// try offers t to an executor that need not block, if it is one.
func (d *delivery) try(t *task) (taken bool) {
	if d.ex == nil {
		d.function(t)()
		return true
	}
	ex, can := d.ex.(interface{ TryExecute(task func()) bool })
	if !can {
		return false
	}
	failed := d.ask(t, func() error { taken = ex.TryExecute(d.function(t)); return nil })
	return taken || failed
}

// submit gives t to the executor and blocks until that has taken or refused it.
func (d *delivery) submit(t *task) {
	d.ask(t, func() error { return d.ex.Execute(d.function(t)) })
}

// ask calls the executor. If that returns an error, panics or calls Goexit, t
// is rejected, unless it has begun to run all the same.
func (d *delivery) ask(t *task, call func() error) (failed bool) {
	exit := byGoexit
	var err error
	defer func() {
		v := recover()
		switch {
		case exit == byReturn:
		case v != nil:
			err = trap(t, v)
		default:
			err = errGoexit
		}
		failed = err != nil
		switch {
		case !failed:
		case d.decide():
			reject(t, err)
		case v != nil:
			// Not of t, which has begun or ended: it is not for us to hide.
			if _, worker := d.ex.(bridge.Withdrawer); worker { // of what ran beside t
				panic(v)
			}
			panic(misusedExecutor(t, v))
		}
	}()
	err = call()
	exit = byReturn
	return false // or what the deferred function says
}

// misusedExecutor returns what is panicked with when the executor of t has taken t and
// then panicked with value.
func misusedExecutor(t *task, value any) error {
	const text = "async: misuse: the executor has taken %s and then panicked, which nobody can be told: "
	if err, ok := value.(error); ok {
		return fmt.Errorf(text+"%w", t.name(), err)
	}
	return fmt.Errorf(text+"%v", t.name(), crash.Text(value))
}

// skip settles t, which was cancelled because of sg before it ran. The cause is
// the one that was seen when that was decided: to look again may find none yet,
// if an inner scope is being made.
func skip(t *task, sg *stopError) {
	t.endUnrun()
	if d := t.more.delivery; d != nil {
		if x, ok := d.ex.(bridge.Withdrawer); ok {
			x.Withdraw(bridge.Token{})
		}
	}
	recordSkipped(t.owner)
	t.self.unrun(&verdict{err: sg.asError(), echo: true, alone: true, cause: sg.cause})
}

// reject settles t, which its executor has refused.
func reject(t *task, err error) {
	t.endUnrun()
	t.self.unrun(&verdict{err: words.Rejected(t.name(), err)})
}
