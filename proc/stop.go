//go:build unix

package proc

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/async"
)

// linger waits for what a command that has ended has left in its group: it may
// be about to end, as the reader of a last pipe is. Then it ends it.
func (p *process) linger(ctx context.Context) {
	cut, cancel := context.WithCancel(p.patience)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	if p.gone(cut, p.c.Linger) {
		return
	}
	p.result.Left = true
	p.stop()
}

// stop ends the group: it sends the signals that ask, and KILL for what is left after them.
func (p *process) stop() {
	if p.c.Grace > 0 && p.asked() {
		return
	}
	p.result.Killed = true
	p.tellOf(syscall.SIGKILL)
	p.group.signal(syscall.SIGKILL)
	if !p.gone(home, p.c.GiveUp) {
		p.result.Survived = true
	}
}

// asked asks the group to end, by one signal after another, and reports whether it has ended
// within a grace. When nobody waits any longer, no further signal asks.
func (p *process) asked() bool {
	for i, sig := range p.c.Signals {
		if i > 0 && p.patience.Err() != nil {
			return false
		}
		if p.ask(sig) {
			return true
		}
	}
	return false
}

// ask sends sig and reports whether the group has ended within the grace.
func (p *process) ask(sig syscall.Signal) bool {
	if !p.c.Mixed {
		p.tellOf(sig)
		p.group.signal(sig)
		p.group.signal(syscall.SIGCONT) // what has been stopped does not hear sig before
		return p.gone(p.patience, p.c.Grace)
	}
	if p.ended() {
		return false // nobody is there who would be told
	}
	end := time.Now().Add(p.c.Grace)
	p.tellOf(sig)
	_ = p.cmd.Process.Signal(sig)   // fails if it has ended
	p.group.signal(syscall.SIGCONT) // the others, too: it may wait for them
	if !p.leaderGone(p.patience, p.c.Grace) {
		return false
	}
	return p.gone(p.patience, min(p.c.Linger, time.Until(end)))
}

// ended reports whether the command has ended, whatever is left of its group.
func (p *process) ended() bool {
	_, _, ended := p.leader.Result()
	return ended
}

// leaderGone waits until the command has ended, for at most d or until ctx is
// done, and reports whether it has.
func (p *process) leaderGone(ctx context.Context, d time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	select {
	case <-p.leader.Done():
	case <-ctx.Done():
	}
	return p.ended()
}

// gone waits until the command and its group have ended, for at most d or until
// ctx is done, and reports whether they have. The system tells nobody of the end
// of a group, so it looks: after 1 ms, 2 ms, 4 ms, up to every 100 ms.
func (p *process) gone(ctx context.Context, d time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	if !p.leaderGone(ctx, d) {
		return false
	}
	for pause := time.Millisecond; !p.group.ended(); pause = min(2*pause, 100*time.Millisecond) {
		if async.Sleep(ctx, pause) != nil {
			return p.group.ended()
		}
	}
	return true
}

// tellOf tells the user that sig is about to be sent.
func (p *process) tellOf(sig syscall.Signal) {
	if p.c.Signalling != nil {
		told, cause := p.c.Signalling, p.result.Cause
		p.tell("Signalling", func() { told(sig, cause) })
	}
}

// A told is a call of a function of the user.
type told struct {
	field string // of the Command, which has the function
	call  *async.Future[struct{}]
}

// tell calls the function of a field of the Command and waits for it, but not for ever:
// nothing is to be kept from its end by the function.
func (p *process) tell(field string, f func()) {
	const most = time.Second
	call := async.Start(home, func(context.Context) error { f(); return nil }, async.Name(field+" of "+p.c.Name))
	p.told = append(p.told, told{field, call})
	_, _ = call.Await(home, most) // heard looks
}

// heard fails if a function of the user has panicked or has not returned.
func (p *process) heard() (err error) {
	for _, t := range p.told {
		_, failed, ended := t.call.Result()
		if !ended {
			failed = fmt.Errorf("%s: its function %s was called and has not returned", p.c.Name, t.field)
		}
		err = join(err, failed)
	}
	return err
}
