//go:build unix

package proc

import (
	"context"
	"errors"
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

// sweep ends what a command that has ended by itself has left in its group: it
// may be about to end, as the reader of a last pipe is.
func (p *process) sweep() {
	if _, _, ended := p.leader.Result(); ended {
		p.ended(p.c.Linger)
	}
	p.end(nil)
}

// end ends the group, once: TERM, and KILL for what is left after the grace. It
// returns when that is done, whoever does it.
func (p *process) end(cause error) {
	p.ending.Do(func() {
		if p.ended(0) {
			return
		}
		p.result.Cause, p.result.Left = cause, cause == nil
		p.tell(func() { p.c.Signalling(syscall.SIGTERM, cause) }, p.c.Signalling != nil)
		p.group.signal(syscall.SIGTERM)
		p.group.signal(syscall.SIGCONT) // what has been stopped does not hear TERM before
		if p.ended(p.c.Grace) {
			return
		}
		p.result.Killed = true
		p.tell(func() { p.c.Signalling(syscall.SIGKILL, cause) }, p.c.Signalling != nil)
		p.group.signal(syscall.SIGKILL)
		if !p.ended(p.c.GiveUp) {
			p.result.Survived = true
			p.giveUp()
		}
	})
}

// ended waits for at most d until the command and its group have ended, and
// reports whether they have.
func (p *process) ended(d time.Duration) bool {
	ctx, cancel := context.WithTimeout(p.ctx, d)
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

// tell calls a function of the user, if there is one, and waits for it, but not
// for ever: a signal is not to be kept back by it.
func (p *process) tell(f func(), given bool) {
	const most = time.Second
	if !given {
		return
	}
	told := async.Start(p.ctx, func(context.Context) error { f(); return nil }, async.Name("callback of "+p.c.Name))
	p.told = append(p.told, told)
	_, _ = told.Await(p.ctx, most)
}

// heard fails if a function of the user has panicked or has not returned.
func (p *process) heard() (err error) {
	for _, told := range p.told {
		if _, failed, ended := told.Result(); ended {
			err = errors.Join(err, failed)
		} else {
			err = errors.Join(err, errLeft)
		}
	}
	return err
}
