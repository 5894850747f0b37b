package async

import "github.com/ambit-go/ambit/async/internal/tree"

// This file is the rules by which choices are decided.

// firstSettled is the rule of Race.
type firstSettled[T any] struct{}

func (firstSettled[T]) judge(c *choice[T, T], k *contender[T]) bool {
	c.value, c.v, k.chosen = k.value, k.v, true
	return true
}

// firstGood is the rule of Any and Hedge.
type firstGood[T any] struct{}

func (firstGood[T]) judge(c *choice[T, T], k *contender[T]) bool {
	switch {
	case k.v.Err == nil:
		c.value, k.chosen = k.value, true
	case c.settled == c.Contenders():
		c.v = c.failures(nil)
	default:
		return false
	}
	return true
}

// winner is the rule of Until.
type winner[T any] struct{ wins func(Result[T]) bool }

func (r winner[T]) judge(c *choice[T, T], k *contender[T]) bool {
	won := false
	if bad := tree.Guard("predicate of Until", func() { won = r.wins(k.result()) }); bad != nil {
		c.v = tree.AsVerdict(bad)
		return true
	}
	switch {
	case won:
		c.value, c.v, k.chosen = k.value, k.v, true
	case c.settled < len(c.all):
		return false
	case c.good == len(c.all):
		c.v.Err = ErrNoWinner
	default:
		c.v = c.failures(nil)
	}
	return true
}

// enoughGood is the rule of Quorum.
type enoughGood[T any] struct{ k int }

func (r enoughGood[T]) judge(c *choice[T, []T], _ *contender[T]) bool {
	switch {
	case c.good == r.k:
		c.value = c.values()
	case len(c.all)-(c.settled-c.good) < r.k:
		c.v = c.failures(ErrNoQuorum)
	default:
		return false
	}
	return true
}

// allGood is the rule of All.
type allGood[T any] struct{}

func (allGood[T]) needsAll() {}

func (allGood[T]) judge(c *choice[T, []T], k *contender[T]) bool {
	switch {
	case k.v.Err != nil:
		c.v, k.chosen = k.v, true
	case c.good == len(c.all):
		c.value = c.values()
	default:
		return false
	}
	return true
}

// allSettled is the rule of Settle.
type allSettled[T any] struct{}

func (allSettled[T]) needsAll() {}

func (allSettled[T]) judge(c *choice[T, []Result[T]], _ *contender[T]) bool {
	if c.settled < len(c.all) {
		return false
	}
	c.value = make([]Result[T], len(c.all))
	for i := range c.all {
		c.value[i] = c.all[i].result()
		c.all[i].chosen = true
	}
	if c.good < len(c.all) {
		c.v = c.failures(nil)
		c.v.Partial = true
	}
	return true
}

// values returns the values of those that succeeded, in order, and marks them.
func (c *choice[T, R]) values() []T {
	values := make([]T, 0, c.good)
	for i := range c.all {
		if k := &c.all[i]; k.judged && k.v.Err == nil {
			k.chosen = true
			values = append(values, k.value)
		}
	}
	return values
}

// result returns the outcome of k.
func (k *contender[T]) result() Result[T] {
	return Result[T]{Index: k.index, Value: k.value, Err: k.v.Err}
}

// failures returns the outcome of a choice in which too many have failed: the
// cancellation if there was one, then why (nil: nothing to add), then their
// errors.
func (c *choice[T, R]) failures(why error) tree.Verdict {
	var errs []error
	var echoes []*tree.Verdict
	var p *tree.Panic
	goexit := false
	for i := range c.all {
		k := &c.all[i]
		if !k.judged || k.v.Err == nil {
			continue
		}
		k.chosen = true
		goexit = goexit || k.v.Goexit
		switch {
		case k.v.Echo:
			echoes = append(echoes, &k.v)
		case k.v.Panic != nil && p == nil:
			p = k.v.Panic
		default:
			errs = append(errs, k.v.Err)
		}
	}
	var echo tree.Verdict
	if len(echoes) > 0 {
		echo = tree.Echoes(&c.f.Task, echoes)
		if len(errs) == 0 && p == nil {
			return echo
		}
	}
	if why != nil {
		errs = append([]error{why}, errs...)
	}
	if echo.Err != nil {
		errs = append([]error{echo.Err}, errs...)
	}
	if p != nil {
		errs = append([]error{p.AsError()}, errs...)
	}
	return tree.Verdict{Err: tree.Joined(&c.f.Task, errs, 0), Panic: p, Goexit: goexit}
}
