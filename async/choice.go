package async

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async/internal/crash"
	"github.com/ambit-go/ambit/async/internal/tally"
	"github.com/ambit-go/ambit/async/internal/tree"
)

// This file is the engine of racer.go. A choice is a future that settles when
// its rule says that enough of its contenders have ended. No goroutine stands
// behind it: the contenders decide it as they end. It stays a member of its
// owner until the last of them has ended, so that losers are joined like
// anything else. The rules are in rule.go.
//
// A contender that has ended goes these ways:
//
//	offer ── queue ── judge ──┬── decides: promiseValues, publish, then the losers
//	  │                       │   are cancelled, and dismissRest
//	  │                       └── does not: waits in the choice for the decision
//	  └── decided before: dismiss
//
// Every contender is dismissed or chosen, once: so every value is given to
// somebody or discarded, and no panic is lost.

// choose starts tasks and returns the choice among them. With a delay, the
// next is started when that has passed or one has failed.
func choose[T, R any](
	ctx context.Context, name string, delay time.Duration, tasks []func(context.Context) (T, error),
	r rule[T, R],
) *Future[R] {
	c := &choice[T, R]{name: name, rule: r, delay: max(delay, 0), all: make([]contender[T], len(tasks))}
	for i, task := range tasks {
		if task == nil {
			panic(crash.Misuse("a task is nil: leave it out instead"))
		}
		k := &c.all[i]
		k.c, k.index = c, i
		k.init(tree.KindContender, task)
		k.f.Task.Self = k
	}
	if c.delay == 0 {
		// Counted before the first starts: that may end, and would find itself the last.
		c.started, c.live = len(tasks), len(tasks)
	}
	if err := c.open(ctx); err != nil {
		c.f.SettleUnowned(err)
		return c.public()
	}
	if c.delay > 0 {
		c.startNext()
		return c.public()
	}
	for i := range c.all {
		start(&c.all[i].f.Task, &c.s, nil, nil)
	}
	return c.public()
}

// settledChoice returns a choice that needs no contenders: its outcome is value and
// err from the first.
func settledChoice[R any](ctx context.Context, name string, value R, err error) *Future[R] {
	c := &choice[R, R]{name: name}
	if err := c.open(ctx); err != nil {
		c.f.SettleUnowned(err)
		return c.public()
	}
	c.value, c.v.Err = value, err
	c.decide()
	c.release()
	return c.public()
}

// open makes c a member of the scope of ctx; an error if that has ended. No
// contender runs yet.
func (c *choice[T, R]) open(ctx context.Context) error {
	c.init(tree.KindChoice, nil)
	c.f.Task.Self = c
	return tree.OpenWithoutHandler(&c.s, ctx, &c.f.Task, &c.m)
}

func (c *choice[T, R]) Func() any { return c.name }

// startNext starts the next contender of a choice with a delay, if one is
// still wanted, and sets the timer for the one after it. It is called by the timer,
// and by the judge when a contender has failed. It reports false if none is
// started: all were, or the choice is decided or cancelled.
func (c *choice[T, R]) startNext() bool {
	c.mu.Lock()
	if c.started > 0 && c.s.Why.Load() != nil { // the first is always started, and may look
		c.frozen = true
	}
	i := c.started
	if c.decided || c.frozen || i == len(c.all) {
		c.mu.Unlock()
		return false
	}
	c.started++
	c.live++
	switch {
	case c.started == len(c.all):
	case c.timer == nil:
		c.timer = time.AfterFunc(c.delay, func() {
			if tree.Exploring {
				defer tree.Starts("next", c)()
			}
			c.startNext()
		})
	default:
		c.timer.Reset(c.delay)
	}
	c.mu.Unlock()
	start(&c.all[i].f.Task, &c.s, nil, nil)
	return true
}

// NeedsAllLeft reports whether c cannot be decided without any of the contenders
// that the rule has not been told of: if one of these waits for c, neither ends.
// A wait for an All is such a ring, too, although the failure of another would decide it.
func (c *choice[T, R]) NeedsAllLeft() bool {
	_, all := c.rule.(interface{ needsAll() })
	c.mu.Lock()
	defer c.mu.Unlock()
	total := len(c.all)
	if c.frozen {
		total = c.started
	}
	return !c.decided && (all || total-c.judged == 1)
}

// Contenders returns how many contenders there will have been: all, or those that were
// started before the choice was cancelled.
func (c *choice[T, R]) Contenders() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen {
		return c.started
	}
	return len(c.all)
}

// offer has the rule judge k, here or on the goroutine that judges already. It
// reports whether the choice has been decided here. Then the caller has to
// cancel the scope of the contenders, and to go on with dismissRest and
// judgeQueued.
func (c *choice[T, R]) offer(k *contender[T]) (decided bool) {
	c.mu.Lock()
	if c.decided {
		c.mu.Unlock()
		c.dismiss(k)
		return false
	}
	if c.last != nil {
		c.last.next = k
	} else {
		c.first = k
	}
	c.last = k
	judging := c.judging
	c.judging = true
	c.mu.Unlock()
	return !judging && c.judgeQueued()
}

// judgeQueued judges the queue of contenders that have ended until one decides
// the choice, or there is none.
func (c *choice[T, R]) judgeQueued() (decided bool) {
	// The lock is given back while the rule judges, which may call the predicate of
	// Until, and while a value is discarded. An empty queue is seen in the
	// critical section that clears judging: offer comes before, and its contender is
	// judged here, or after, and judges itself.
	c.mu.Lock()
	for c.first != nil {
		k := c.first
		if c.first = k.next; c.first == nil {
			c.last = nil
		}
		late := c.decided // by a contender before it in the queue
		c.mu.Unlock()
		if late {
			c.dismiss(k)
		} else if c.judge(k) {
			c.decide()
			return true
		}
		c.mu.Lock()
		c.judged++
	}
	c.judging = false
	c.mu.Unlock()
	return false
}

// judge tells the rule of k and reports whether that decides the choice. A Hedge
// starts the next contender when one has failed; if there is none to start, the
// rule is asked again, since what it waits for may not come.
func (c *choice[T, R]) judge(k *contender[T]) bool {
	// No lock is needed: one goroutine judges at a time, and k has ended.
	k.judged = true
	c.settled++
	if k.v.Err == nil {
		c.good++
	}
	decided := c.rule.judge(c, k)
	if !decided && c.delay > 0 && k.v.Err != nil && !c.startNext() {
		decided = c.rule.judge(c, k) // that none is started now may decide it
	}
	return decided
}

// decide settles the choice with value and v. The caller is to cancel the
// contenders that still run, and then to dismiss those that the outcome does not
// speak of. Waiters are woken first, so a stubborn loser costs the winner nothing.
func (c *choice[T, R]) decide() {
	c.mu.Lock()
	c.decided = true
	if c.timer != nil {
		c.timer.Stop()
	}
	c.mu.Unlock()
	// The outcome that waiters will be given is settled before they are woken.
	if c.v.Err == nil || c.v.Partial {
		c.promiseValues()
	}
	tree.Wake(c.f.Publish(&c.v))
}

// ended is called by a contender as the last thing it does, when it was judged or
// dismissed. The last contender of a decided choice releases that.
func (c *choice[T, R]) ended() {
	c.mu.Lock()
	c.live--
	over := c.decided && c.live == 0
	c.mu.Unlock()
	if over {
		c.release()
	}
}

// release ends the membership of a choice after its last contender. The choice has
// settled long before as a rule. A fault of an observer is told to the
// owner, which has not ended: c is a member of it until the last line.
func (c *choice[T, R]) release() {
	c.s.Mu.Lock()
	c.s.Ended = true
	sum := c.s.Tally.Sum(tally.End{})
	c.s.Mu.Unlock()
	errs, _ := tree.WithPaths(sum.Errs)
	for _, err := range errs { // of observers
		c.f.Task.Owner.RecordHookError(err)
	}
	tree.Seal(&c.s)
	c.f.Task.Leave()
}
