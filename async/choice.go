package async

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file is the engine of racer.go. A choice is a future that settles when
// its rule says that enough of its contenders have. No goroutine stands behind
// it: the contenders decide it as they end. It stays a member of its owner
// until the last of them has ended, so that losers are joined like anything
// else.

// A rule is told of the contenders' outcomes one by one, never by two
// goroutines at once. It reports whether the choice is decided now, if so it
// sets value and v, and marks the contenders that the outcome speaks of as
// chosen.
type rule[T, R any] func(c *choice[T, R], last *contender[T]) (decided bool)

// A choice is decided by its rule, once.
type choice[T, R any] struct {
	Future[R]
	name  string
	rule  rule[T, R]
	s     scope // of the contenders
	m     more
	all   []contender[T]
	v     verdict       // the outcome; only for who judges
	delay time.Duration // between the starts of contenders; 0: start all at once

	settled int // how many the rule has been told of; only for who judges
	good    int // how many of them succeeded; only for who judges

	mu          mutex // guards what follows; taken before all others
	first, last *contender[T]
	judging     bool // somebody tells the rule of what is queued
	decided     bool
	frozen      bool // no more are started, because the choice was cancelled
	started     int
	live        int         // started, or about to be, and not ended
	timer       *time.Timer // starts the next
}

// A contender is one task of a choice.
type contender[T any] struct {
	Future[T]
	c       contest[T]
	index   int
	v       verdict
	judged  bool    // the rule has been told
	chosen  bool    // the outcome of the choice speaks of it
	discard func(T) // set by Discarding, on the handler's goroutine
	next    *contender[T]
}

// contest is what a contender knows of its choice.
type contest[T any] interface {
	offer(k *contender[T])
	ended()
}

// choose starts tasks and returns the choice among them. With a delay, the
// next is started when that has passed or one has failed.
func choose[T, R any](ctx context.Context, name string, delay time.Duration, tasks []func(context.Context) (T, error), r rule[T, R]) *Future[R] {
	c := &choice[T, R]{name: name, rule: r, delay: max(delay, 0), all: make([]contender[T], len(tasks))}
	for i, task := range tasks {
		if task == nil {
			panic(name + " of a nil task")
		}
		k := &c.all[i]
		k.c, k.index = c, i
		k.init(kindContender, task)
		k.f.t.self = k
	}
	if err := c.open(ctx); err != nil {
		c.f.settleUnowned(err)
		return &c.Future
	}
	if c.delay > 0 {
		c.startNext()
		return &c.Future
	}
	c.started, c.live = len(tasks), len(tasks)
	for i := range c.all {
		c.all[i].f.t.start(&c.s, nil, nil)
	}
	return &c.Future
}

// chosen returns a choice that needs no contenders.
func chosen[R any](ctx context.Context, name string, value R, err error) *Future[R] {
	c := &choice[R, R]{name: name}
	if err := c.open(ctx); err != nil {
		c.f.settleUnowned(err)
		return &c.Future
	}
	c.value, c.v.err = value, err
	c.decide()
	c.release()
	return &c.Future
}

// open makes c a member of the scope of ctx; an error if that has ended.
func (c *choice[T, R]) open(ctx context.Context) error {
	c.init(kindChoice, nil)
	c.f.t.self = c
	return c.s.stand(ctx, &c.f.t, &c.m)
}

// stand makes t, which no handler stands behind but what is started in s, a
// member of the scope of ctx; an error if that has ended.
func (s *scope) stand(ctx context.Context, t *task, m *more) error {
	outer, own := nearest(ctx)
	if own || ctx == context.Background() {
		ctx = nil
	}
	owner := ownerOf(outer)
	t.owner, t.more = owner, m
	t.setOrigin(ctx)
	s.t = t
	s.inherit(owner)
	t.inner.Store(s)
	if !s.enroll() {
		return lateStart(outer)
	}
	return nil
}

func (c *choice[T, R]) fn() any { return c.name }

// startNext starts the next contender of a choice with a delay, if one is
// still wanted, and sets the timer for the one after it.
func (c *choice[T, R]) startNext() bool {
	c.mu.Lock()
	if c.started > 0 && c.s.sig.Load() != nil {
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
			if exploring {
				defer starts("next", c)()
			}
			c.startNext()
		})
	default:
		c.timer.Reset(c.delay)
	}
	c.mu.Unlock()
	c.all[i].f.t.start(&c.s, nil, nil)
	return true
}

// total returns how many contenders there will have been.
func (c *choice[T, R]) total() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen {
		return c.started
	}
	return len(c.all)
}

// offer has the rule judge k, here or on the goroutine that judges already.
func (c *choice[T, R]) offer(k *contender[T]) {
	c.mu.Lock()
	if c.decided {
		c.mu.Unlock()
		c.lose(k)
		return
	}
	if c.last != nil {
		c.last.next = k
	} else {
		c.first = k
	}
	c.last = k
	if c.judging {
		c.mu.Unlock()
		return
	}
	c.judging = true
	for c.first != nil {
		k := c.first
		if c.first = k.next; c.first == nil {
			c.last = nil
		}
		lost := c.decided
		c.mu.Unlock()
		switch {
		case lost:
			c.lose(k)
		case c.judge(k):
			c.decide()
			c.s.cancel(canceled(ErrDecided)) // from here: deeper down the stack had to grow for it
			c.loseRest()
		}
		c.mu.Lock()
	}
	c.judging = false
	c.mu.Unlock()
}

// judge tells the rule of k and reports whether that decides the choice.
func (c *choice[T, R]) judge(k *contender[T]) bool {
	k.judged = true
	c.settled++
	if k.v.err == nil {
		c.good++
	}
	decided := c.rule(c, k)
	if !decided && c.delay > 0 && k.v.err != nil && !c.startNext() {
		decided = c.rule(c, k) // that none is started now may decide it
	}
	return decided
}

// decide settles the choice with value and v. Who still runs is to be cancelled
// next, and who is not spoken of dealt with.
func (c *choice[T, R]) decide() {
	c.mu.Lock()
	c.decided = true
	if c.timer != nil {
		c.timer.Stop()
	}
	c.mu.Unlock()
	if c.v.err == nil && c.toldOtherwise() {
		c.value, c.v.err = *new(R), c.m.expiryTold
	}
	wake(c.f.publish(&c.v))
}

// loseRest deals with those who were judged and that the outcome does not
// speak of.
func (c *choice[T, R]) loseRest() {
	for i := range c.all {
		if k := &c.all[i]; k.judged && !k.chosen {
			c.lose(k)
		}
	}
}

// toldOtherwise reports whether the values that were chosen are to be
// discarded, because a waiter was told of an expiry before.
func (c *choice[T, R]) toldOtherwise() bool {
	discards := false
	for i := range c.all {
		discards = discards || c.all[i].chosen && c.all[i].discard != nil
	}
	c.f.mu.Lock()
	told := discards && c.m.expiryTold != nil
	c.f.valuePromised = !told
	c.f.mu.Unlock()
	for i := range c.all {
		c.all[i].chosen = c.all[i].chosen && !told
	}
	return told
}

// lose deals with a contender that the outcome does not speak of: its error is
// dropped, its value discarded, and a panic or Goexit is the scope's.
func (c *choice[T, R]) lose(k *contender[T]) {
	owner := c.f.t.owner
	switch {
	case k.v.mustRaise() && owner.t.kind == kindRoot:
		owner.home.report(k.v.err)
	case k.v.mustRaise():
		owner.failWith(&k.v)
	case k.v.err == nil && k.discard != nil:
		if err := guard("discard hook of "+k.f.t.name(), func() { k.discard(k.value) }); err != nil {
			owner.noteHook(err)
		}
	}
}

// ended is called by a contender as the last thing it does.
func (c *choice[T, R]) ended() {
	c.mu.Lock()
	c.live--
	over := c.decided && c.live == 0
	c.mu.Unlock()
	if over {
		c.release()
	}
}

// release ends the membership of a choice after its last contender.
func (c *choice[T, R]) release() {
	c.s.mu.Lock()
	c.s.ended = true
	sum := c.s.tally.Sum(tally.Body{}, tally.Stop{}, nil)
	c.s.mu.Unlock()
	for _, err := range sum.Errs { // of observers
		c.f.t.owner.noteHook(err)
	}
	c.s.seal()
	c.f.t.leave()
}

// failures returns the outcome of a choice in which too many have failed: the
// cancellation if there was one, then why (nil: nothing to add), then their
// errors.
func (c *choice[T, R]) failures(why error) verdict {
	var errs []error
	var echo *verdict
	var p *PanicError
	for i := range c.all {
		k := &c.all[i]
		if !k.judged || k.v.err == nil {
			continue
		}
		k.chosen = true
		switch {
		case k.v.echo:
			echo = &k.v
		case k.v.panic != nil && p == nil:
			p = k.v.panic
		default:
			errs = append(errs, k.v.err)
		}
	}
	if echo != nil && len(errs) == 0 && p == nil {
		return *echo
	}
	if why != nil {
		errs = append([]error{why}, errs...)
	}
	if echo != nil {
		errs = append([]error{echo.err}, errs...)
	}
	if p != nil {
		errs = append([]error{p}, errs...)
	}
	return verdict{err: joined(&c.f.t, errs, 0), panic: p}
}

func (k *contender[T]) future() *future { return nil } // nobody can wait for it alone

// run is the body of the contender's goroutine.
func (k *contender[T]) run() {
	defer k.finish() // also on Goexit
	k.call()
	nilPanic(&k.f.t.exit)
}

// finish joins what the contender has started and has its outcome judged.
func (k *contender[T]) finish() {
	sg := k.f.t.end(k.f.err, &k.v)
	k.f.t.observed(&k.v, sg)
	k.leave()
}

// unrun ends a contender that never ran.
func (k *contender[T]) unrun(v *verdict) {
	k.v = *v
	k.leave()
}

func (k *contender[T]) leave() {
	k.c.offer(k)
	k.f.t.move(stateDone)
	k.f.t.leave()
	k.c.ended()
}
