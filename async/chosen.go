package async

// This file is what becomes of contenders when their choice is decided: of those
// that were chosen, because the outcome speaks of them, and of the others. Every
// value is given to somebody or discarded.

// promiseValues decides what becomes of chosen values that have a discard hook.
// If a waiter was told of an expiry before, nobody is given them, and the choice
// settles with what that waiter was told. Else they are kept for the waiter that
// is given the outcome: if there is none, they are discarded, see unclaimed.
func (c *choice[T, R]) promiseValues() {
	expiry := c.f.promiseValue()
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
		c.value, c.v = *new(R), verdict{err: expiry}
	}
}

// keepValues keeps the outcome with the hooks of what is in it. The owner is
// told if one fails. c itself must not be kept: a root task's values are
// discarded when that is collected.
func (c *choice[T, R]) keepValues() {
	var values []discarded
	for i := range c.all {
		if k := &c.all[i]; k.isChosenValue() {
			values = append(values, &held[T]{k.value, k.discard, k.f.t.name()})
		}
	}
	owner := c.f.t.owner
	discard := func(R) {
		for _, value := range values {
			if err := value.discard(); err != nil {
				owner.recordHookError(err)
			}
		}
	}
	c.v.value = &held[R]{c.value, discard, c.f.t.name()}
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
	owner := c.f.t.owner
	switch {
	case k.v.mustRaise() && owner.t.kind == kindRoot:
		owner.home.report(k.v.err)
	case k.v.mustRaise():
		owner.recordOutcome(&k.v, false)
	case k.v.err == nil:
		k.discardValue()
	}
}
