package filestore

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
)

// via calls f on where the tasks are now.
func via[T any](ctx context.Context, s *store, f func(taskqueue.Store) (T, error)) (T, error) {
	st, err := s.current(ctx)
	if err != nil {
		return *new(T), err
	}
	v, err := f(st)
	s.failed(ctx, st, err)
	return v, err
}

// The methods of taskqueue.Store.

func (s *store) Enqueue(ctx context.Context, queue string, tasks []taskqueue.NewTask) ([]taskqueue.Result, error) {
	return via(ctx, s, func(st taskqueue.Store) ([]taskqueue.Result, error) { return st.Enqueue(ctx, queue, tasks) })
}

func (s *store) Claim(ctx context.Context, r taskqueue.ClaimRequest) (taskqueue.Claimed, error) {
	return via(ctx, s, func(st taskqueue.Store) (taskqueue.Claimed, error) { return st.Claim(ctx, r) })
}

func (s *store) Extend(ctx context.Context, r taskqueue.ExtendRequest) ([]taskqueue.ExtendResult, error) {
	return via(ctx, s, func(st taskqueue.Store) ([]taskqueue.ExtendResult, error) { return st.Extend(ctx, r) })
}

func (s *store) Settle(ctx context.Context, queue string, outcomes []taskqueue.Outcome) ([]taskqueue.SettleResult, error) {
	return via(ctx, s, func(st taskqueue.Store) ([]taskqueue.SettleResult, error) { return st.Settle(ctx, queue, outcomes) })
}

func (s *store) Get(ctx context.Context, queue, id string) (taskqueue.Info, error) {
	return via(ctx, s, func(st taskqueue.Store) (taskqueue.Info, error) { return st.Get(ctx, queue, id) })
}

func (s *store) List(ctx context.Context, queue string, r taskqueue.ListRequest) (taskqueue.Page, error) {
	return via(ctx, s, func(st taskqueue.Store) (taskqueue.Page, error) { return st.List(ctx, queue, r) })
}

func (s *store) Queues(ctx context.Context) ([]string, error) {
	return via(ctx, s, func(st taskqueue.Store) ([]string, error) { return st.Queues(ctx) })
}

func (s *store) Stats(ctx context.Context, queue string) (taskqueue.Stats, error) {
	return via(ctx, s, func(st taskqueue.Store) (taskqueue.Stats, error) { return st.Stats(ctx, queue) })
}

func (s *store) Act(ctx context.Context, queue, id string, act taskqueue.Act) (bool, error) {
	return via(ctx, s, func(st taskqueue.Store) (bool, error) { return st.Act(ctx, queue, id, act) })
}

func (s *store) Purge(ctx context.Context, queue string, state taskqueue.State, cursor string) (n int, next string, err error) {
	_, err = via(ctx, s, func(st taskqueue.Store) (_ struct{}, err error) {
		n, next, err = st.Purge(ctx, queue, state, cursor)
		return struct{}{}, err
	})
	return n, next, err
}

func (s *store) Tick(ctx context.Context, t taskqueue.Tick) (bool, error) {
	return via(ctx, s, func(st taskqueue.Store) (bool, error) { return st.Tick(ctx, t) })
}

func (s *store) Unschedule(ctx context.Context, queue, name string) (bool, error) {
	return via(ctx, s, func(st taskqueue.Store) (bool, error) { return st.Unschedule(ctx, queue, name) })
}

func (s *store) Periodic(ctx context.Context, queue string) ([]taskqueue.Periodic, error) {
	return via(ctx, s, func(st taskqueue.Store) ([]taskqueue.Periodic, error) { return st.Periodic(ctx, queue) })
}

func (s *store) Configure(ctx context.Context, queue string, f func(*taskqueue.Settings)) error {
	_, err := via(ctx, s, func(st taskqueue.Store) (struct{}, error) { return struct{}{}, st.Configure(ctx, queue, f) })
	return err
}

func (s *store) Wait(ctx context.Context, queue string, seen uint64, until time.Time) error {
	_, err := via(ctx, s, func(st taskqueue.Store) (struct{}, error) { return struct{}{}, st.Wait(ctx, queue, seen, until) })
	return err
}

// Audit is the method of taskqueue.Auditor.
func (s *store) Audit(ctx context.Context, queue string) ([]string, error) {
	return via(ctx, s, func(st taskqueue.Store) ([]string, error) { return st.(taskqueue.Auditor).Audit(ctx, queue) })
}
