package jobqueue_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing/synctest"

	"github.com/ambit-go/ambit/async"
)

// A hand is a scope that takes jobs. It is told what to do next, one thing at a
// time, and says when that is done.
type hand struct {
	todo   chan func(context.Context) error
	said   chan any // what a Take has returned: a reply
	cancel context.CancelFunc
	quit   context.CancelFunc // of the Take that waits
	asks   *asker             // that Take
	ended  chan struct{}
}

type reply struct {
	jobs []job
	err  error
}

var errGoOn = errors.New("go on")

// hand returns the ith hand, a new one if there is none.
func (p *program) hand(i int) *hand {
	if p.hands[i] != nil {
		return p.hands[i]
	}
	h := &hand{todo: make(chan func(context.Context) error), said: make(chan any, 1), ended: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	h.cancel = cancel
	go func() {
		defer close(h.ended)
		defer func() { _ = recover() }()
		_ = async.Scope(ctx, func(ctx context.Context) error {
			for f := range h.todo {
				if err := f(ctx); err != errGoOn {
					return err
				}
			}
			return nil
		})
	}()
	p.hands[i] = h
	return h
}

func (p *program) take(i, most int) {
	h := p.hand(i)
	if h.asks != nil {
		return
	}
	p.say("%d takes %d", i, most)
	h.asks = &asker{by: h, most: most}
	var quit context.Context
	h.todo <- func(ctx context.Context) error {
		quit, h.quit = context.WithCancel(ctx)
		jobs, err := p.q.Take(quit, most)
		h.said <- reply{jobs, err}
		return errGoOn
	}
	p.m.take(h.asks)
}

// settle settles some jobs, those of others among them, which it must leave
// alone.
func (p *program) settle(i, how int, jobs []job, inner bool) {
	h := p.hand(i)
	if h.asks != nil {
		return
	}
	p.say("%d settles %v as %d", i, jobs, how)
	f := func(ctx context.Context) error {
		switch how {
		case 0:
			p.q.Ack(ctx, jobs...)
		case 1:
			p.q.Nack(ctx, errBoom, jobs...)
		default:
			p.q.Nack(ctx, nil, jobs...)
		}
		return nil
	}
	h.todo <- func(ctx context.Context) error {
		if inner {
			_ = async.Scope(ctx, f)
		} else {
			_ = f(ctx)
		}
		return errGoOn
	}
	synctest.Wait()
	for _, j := range jobs {
		if k := p.m.find(j.key); k != nil && k.by == h {
			[]func(*known){p.m.done, p.m.fail, p.m.stop}[how](k)
		}
	}
}

// end ends a scope in some way, or only the Take that it waits in.
func (p *program) end(i, how int) {
	h := p.hands[i]
	if h == nil {
		return
	}
	if h.asks != nil {
		p.say("%d stops to wait", i)
		h.quit()
		p.m.waiters = slices.DeleteFunc(p.m.waiters, func(a *asker) bool { return a == h.asks })
		h.asks.over, h.asks.err = true, context.Canceled
		return
	}
	how %= 5
	p.say("%d ends as %d", i, how)
	p.hands[i] = nil
	settle := p.m.fail
	switch how {
	case 0:
		settle = p.m.done
	case 1:
		settle = p.m.stop
		h.cancel()
	}
	h.todo <- func(ctx context.Context) error {
		switch how {
		case 2:
			return errBoom
		case 3:
			panic("boom")
		case 4:
			runtime.Goexit()
		}
		return nil
	}
	<-h.ended
	h.cancel()
	for _, k := range p.m.heldBy(h) {
		settle(k)
	}
}
