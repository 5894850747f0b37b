//go:build unix

package proc

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/async"
)

// stop is the abort hook: it returns when the group has ended, or cannot be
// ended.
func (p *process) stop(_ context.Context, cause error) error {
	<-p.started
	if p.group.id == 0 {
		return nil // nothing was started
	}
	if _, _, ended := p.leader.Result(); ended {
		cause = nil // it came to its end before it was told to stop
	}
	p.end(cause)
	return nil
}

// linger waits for what a command that has ended has left in its group: it may
// be about to end, as the reader of a last pipe is.
func (p *process) linger() { p.ended(p.patience, p.c.Linger) }

// end ends the group, once: TERM, and KILL for what is left after the grace. It
// returns when that is done, whoever does it.
func (p *process) end(cause error) {
	p.ending.Do(func() {
		if p.ended(home, 0) {
			return
		}
		p.result.Cause, p.result.Left = cause, cause == nil
		if p.c.Grace > 0 {
			p.signal(syscall.SIGTERM)
			p.group.signal(syscall.SIGCONT) // what has been stopped does not hear TERM before
		}
		if p.ended(p.patience, p.c.Grace) {
			return
		}
		p.result.Killed = true
		p.signal(syscall.SIGKILL)
		if !p.ended(home, p.c.GiveUp) {
			p.result.Survived = true
			p.giveUp()
		}
	})
}

// signal sends a signal to the group, once the user has been told.
func (p *process) signal(sig syscall.Signal) {
	if p.c.Signalling != nil {
		p.tell(func() { p.c.Signalling(sig, p.result.Cause) })
	}
	p.group.signal(sig)
}

// ended waits until the command and its group have ended, for at most d or
// until ctx is done, and reports whether they have.
func (p *process) ended(ctx context.Context, d time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	if _, err := p.leader.Wait(ctx); err != nil && ctx.Err() != nil {
		return false
	}
	_, err := async.Poll(ctx, async.Backoff(time.Millisecond, 100*time.Millisecond),
		func(context.Context) (struct{}, bool, error) {
			return struct{}{}, p.group.ended(), nil
		}).Await(ctx, 0)
	return err == nil || p.group.ended()
}

// tell calls a function of the user and waits for it, but not for ever: nothing
// is to be kept from its end by it.
func (p *process) tell(f func()) {
	const most = time.Second
	told := async.Start(home, func(context.Context) error { f(); return nil }, async.Name("function of "+p.c.Name))
	p.told = append(p.told, told)
	_, _ = told.Await(home, most) // heard looks
}

// heard fails if a function of the user has panicked or has not returned.
func (p *process) heard() (err error) {
	for _, told := range p.told {
		_, failed, ended := told.Result()
		if !ended {
			failed = fmt.Errorf("%s: a function that was called has not returned", p.c.Name)
		}
		err = join(err, failed)
	}
	return err
}
