package async

// This file is the tasks of a choice, and how one that has ended offers itself
// to be judged.

// A contender is one task of a choice.
type contender[T any] struct {
	Future[T]
	c       contest[T]
	index   int
	v       verdict
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

func (k *contender[T]) future() *future { return nil } // nobody can wait for it alone

// run is the body of the contender's goroutine.
func (k *contender[T]) run() {
	defer k.finish() // also on Goexit
	k.call()
	nilPanic(&k.f.t.exit)
}

// finish joins what the contender has started and has its outcome judged. A
// value beside an error of what it has started is given to nobody.
func (k *contender[T]) finish() {
	returned := k.f.t.exit == byReturn && k.f.err == nil
	sg := k.f.t.end(k.f.err, &k.v)
	k.f.t.observed(&k.v, sg)
	if returned && k.v.err != nil {
		k.discardValue()
	}
	k.leave()
}

// isChosenValue reports whether a value of k is in the outcome and has a hook.
func (k *contender[T]) isChosenValue() bool { return k.chosen && k.v.err == nil && k.discard != nil }

// discardValue gives the value to the hook of Discarding, if there is one. What
// goes wrong in it is told to the scope that the choice belongs to.
func (k *contender[T]) discardValue() {
	if k.discard == nil {
		return
	}
	value := held[T]{k.value, k.discard, k.f.t.name()}
	k.value = *new(T)
	k.f.t.retire() // the hook is no part of the handler
	if err := value.discard(); err != nil {
		k.f.t.owner.t.owner.recordHookError(err)
	}
}

// unrun ends a contender that never ran.
func (k *contender[T]) unrun(v *verdict) {
	k.v = *v
	k.leave()
}

func (k *contender[T]) leave() {
	for decided := k.c.offer(k); decided; decided = k.c.judgeQueued() {
		k.f.t.owner.cancel(decidedSignal) // from here: deeper down the stack has to grow for it
		k.c.dismissRest()
	}
	k.f.t.move(stateDone)
	k.f.t.leave()
	k.c.ended()
}
