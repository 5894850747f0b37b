package service

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async"
)

// This file starts services, and their tasks.

// A job is a task of a member. An executor ([async.On]) may block until it has a place, so another goroutine than the
// supervisor's hands the task to it: the supervisor is to hear whoever tells it to stop. The goroutine ends with the
// ctx of the task.
type job struct {
	handed chan struct{}           // closed when async.Start has come back
	future *async.Future[struct{}] // set by then; nil if it has panicked
	bad    any                     // what it has panicked with
	known  bool                    // the supervisor has seen that handed is closed; only it uses this
}

// startJob is [async.Start]. rest waits for the task where that does not come back: if an executor runs it at once,
// and it calls Goexit.
func startJob(ctx context.Context, f, rest func(context.Context) error, opts ...async.TaskOption) *job {
	j := &job{handed: make(chan struct{})}
	go func() {
		defer close(j.handed)
		defer func() {
			if j.bad = recover(); j.bad == nil && j.future == nil {
				j.future = async.Start(context.Background(), func(ctx context.Context) error {
					err := rest(ctx)
					if e, ok := err.(*async.UnawaitedError); ok {
						return e.Err
					}
					return err
				})
			}
		}()
		j.future = async.Start(ctx, f, opts...)
	}()
	return j
}

// news returns a channel that is closed when there is news of the job since settled was asked.
func (j *job) news() <-chan struct{} {
	if j.known && j.future != nil {
		return j.future.Done()
	}
	return j.handed
}

// settled reports whether the task has ended. It raises what async.Start has panicked with, such as misuse of an
// option.
func (j *job) settled() bool {
	if !closed(j.handed) {
		return false
	}
	j.known = true
	if j.bad != nil {
		panic(j.bad)
	}
	return j.future.State() == async.StateDone
}

// result returns how the task, which has ended, has done so.
func (j *job) result() error {
	_, err, _ := j.future.Result()
	return err
}

// start starts the services, one when the one before it is ready.
func (s *set) start() {
	for _, m := range s.members {
		if s.collect(); s.stopping {
			return
		}
		s.launch(m)
		if m.svc.Startup > 0 {
			s.awaitReady(m)
		}
	}
	s.collect() // they may be none
}

// launch starts m. If its executor has no place it waits for that.
func (s *set) launch(m *member) {
	s.call(m)
	s.launched++
	s.wait(nil, func() bool { return s.stopping || closed(m.run.handed) })
}

// call starts the task of m.
func (s *set) call(m *member) {
	m.ctx, m.cancel = context.WithCancelCause(context.WithValue(s.scope, memberKey{}, m))
	opts := append([]async.TaskOption{async.Name(m.label)}, m.svc.Options...)
	all := async.NewGroup(m.ctx, async.Name(m.label))
	s.mu.Lock()
	m.state.all = all
	s.mu.Unlock()
	// A group of its own, so that a Leader among the options ends no other service.
	m.own = async.NewGroup(all.Context(), async.Name(m.label))
	ctx, giveUp := context.WithCancelCause(m.own.Context())
	m.giveUp = giveUp
	m.run = startJob(ctx, m.call, m.own.Wait, opts...)
}

// awaitReady waits until m is ready, and fails m if that takes too long.
func (s *set) awaitReady(m *member) {
	begun, limit := time.Now(), time.NewTimer(m.svc.Startup)
	defer limit.Stop()
	if s.wait(limit.C, func() bool { return s.stopping || m.wasReady() }) || s.mustCut() {
		return
	}
	err := &async.TimeoutError{Task: m.label + ": startup", Limit: m.svc.Startup, Waited: time.Since(begun)}
	s.fail(failure{err: err, order: s.next()})
}
