package redisstore

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/locks"
)

// run carries out a step. An error of the server, or of the way to it, is
// ErrUnavailable; the step may have been done.
func (s *Store) run(ctx context.Context, script *redis.Script, keys []string, args ...any) (answer, error) {
	if script == s.release || script == s.admin {
		return s.runBy(ctx, onceClient{s.client}, script, keys, args...)
	}
	return s.runBy(ctx, s.client, script, keys, args...)
}

// runBy carries out a step by a client.
func (s *Store) runBy(
	ctx context.Context, client redis.Scripter, script *redis.Script, keys []string, args ...any,
) (answer, error) {
	if ctx.Err() != nil {
		return answer{}, locks.Unavailable(context.Cause(ctx))
	}
	if s.closed.Load() {
		return answer{}, locks.Unavailable(locks.ErrClosed)
	}
	got, err := script.Run(ctx, client, keys, args...).Result()
	if err != nil {
		switch {
		case errors.Is(err, redis.ErrClosed):
			err = locks.ErrClosed
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		}
		return answer{}, classed(err)
	}
	return answer{got}, nil
}

// spare returns the client by which leases are renewed. While the user keeps all connections
// of a pool that is one with connections beside it, which end with done: else the
// leases would be lost though the server is well.
func (s *Store) spare(ctx context.Context, all []locks.Renewal) (client redis.UniversalClient, done func()) {
	var one redis.UniversalClient
	switch of := s.client.(type) {
	case *redis.Client:
		if busy(of) {
			options := *of.Options()
			options.PoolSize, options.MinIdleConns = 1, 0
			one = redis.NewClient(&options)
		}
	case *redis.ClusterClient:
		if s.busyNode(ctx, of, all) {
			options := *of.Options()
			options.PoolSize, options.MinIdleConns = 1, 0
			one = redis.NewClusterClient(&options)
		}
	}
	if one == nil {
		return s.client, func() {}
	}
	return one, func() { _ = one.Close() }
}

// busyNode says whether a node of a cluster that has some of the leases is busy. It goes by what is known of
// the cluster: to ask that for its nodes waits for one of the connections.
func (s *Store) busyNode(ctx context.Context, of *redis.ClusterClient, all []locks.Renewal) bool {
	seen := map[string]bool{}
	for i := range all {
		part := s.part(all[i].Name)
		if seen[part] {
			continue
		}
		seen[part] = true
		if node, err := of.MasterForKey(ctx, part); err == nil && busy(node) {
			return true
		}
	}
	return false
}

// busy says whether all connections of a pool are in use.
func busy(client *redis.Client) bool {
	stats := client.PoolStats()
	return stats.IdleConns == 0 && int(stats.TotalConns) >= client.Options().PoolSize
}

// scriptMayNot is what the server says of a command of a script that the user may not use.
const scriptMayNot = "The user executing the script can't"

// classed says of an error whether it helps to ask again: not if the user may not.
func classed(err error) error {
	switch {
	case errors.Is(err, locks.ErrValidation):
		return err
	case redis.IsAuthError(err), redis.IsPermissionError(err), strings.Contains(err.Error(), scriptMayNot):
		return locks.Invalid(err)
	}
	return locks.Unavailable(err)
}

// A onceClient sends each script once. The client sends again what has had no answer, and the
// second answer of a step that takes something away is that there is nothing: who repeats such
// a step has to know that it did.
type onceClient struct{ redis.UniversalClient }

// A onceCmd is a command that the client does not repeat.
type onceCmd struct{ *redis.Cmd }

func (onceCmd) NoRetry() bool { return true }

func (c onceClient) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return c.once(ctx, "eval", script, keys, args)
}

func (c onceClient) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	return c.once(ctx, "evalsha", sha, keys, args)
}

func (c onceClient) once(ctx context.Context, name, script string, keys []string, args []any) *redis.Cmd {
	all := []any{name, script, len(keys)}
	for _, key := range keys {
		all = append(all, key)
	}
	cmd := redis.NewCmd(ctx, append(all, args...)...)
	cmd.SetFirstKeyPos(3)            // for the slot of a cluster
	_ = c.Process(ctx, onceCmd{cmd}) // the command has the error
	return cmd
}

// Acquire is a method of locks.Store.
func (s *Store) Acquire(ctx context.Context, name locks.Name, requests []locks.Request) (locks.Turn, error) {
	args := make([]any, 0, 4+19*len(requests))
	args = append(args, s.channels(), name.Key, s.id, micros(locks.WaiterLife))
	for i := range requests {
		q := &requests[i]
		has, data := 0, ""
		if q.Data != nil {
			has, data = 1, *q.Data
		}
		args = append(args, q.ID, q.Version, q.Owner, int(q.Kind), q.Shared, q.Size, max(q.Permits, 1), micros(q.Lease), q.Wait,
			q.Barging, micros(q.LockDelay), has, data, q.OnlyIfExists, q.DeleteOnRelease, q.Resize, micros(q.Retention), q.Strict, q.Brief)
	}
	a, err := s.run(ctx, s.acquire, s.keys(name), args...)
	if err != nil {
		return locks.Turn{}, err
	}
	turn := locks.Turn{Now: a.at(0).time(), Next: a.at(1).time(), Size: int(a.at(2).number())}
	for i := range requests {
		turn.Answers = append(turn.Answers, a.at(3).at(i).answer(&requests[i]))
	}
	return turn, nil
}

// Release is a method of locks.Store.
func (s *Store) Release(ctx context.Context, name locks.Name, ref locks.Ref, data *string) (bool, error) {
	a, err := s.run(ctx, s.release, s.keys(name), s.channels(), name.Key, ref.ID, ref.Version, optional(data))
	if err != nil {
		return false, err
	}
	return a.number() == 1, nil
}

const (
	// renewals is how many leases a step renews at most, so that it holds up nobody for long.
	renewals = 200
	// renewing is how many such steps of one call are on their way: the server does one
	// while this process writes the next.
	renewing = 2
)

// Renew is a method of locks.Store. A few hundred leases are renewed by one step. Those of a
// part of a cluster that does not answer are Skipped: they have no others lost.
func (s *Store) Renew(ctx context.Context, all []locks.Renewal) ([]locks.RenewResult, error) {
	client, done := s.spare(ctx, all)
	defer done()
	results := make([]locks.RenewResult, len(all))
	for i := range results {
		results[i].Verdict = locks.Skipped
	}
	most := parts // a node that does not answer keeps none of the others waiting
	if s.single() {
		most = renewing
	}
	var answered atomic.Bool
	var failure atomic.Pointer[error]
	err := async.ForEach(ctx, s.lots(all), func(ctx context.Context, some []int) error {
		if err := s.renewSome(ctx, client, all, some, results); err != nil {
			failure.CompareAndSwap(nil, &err)
		} else {
			answered.Store(true)
		}
		return nil
	}, async.Limit(most))
	if first := failure.Load(); first != nil {
		err = *first
	}
	if err != nil && !answered.Load() {
		return nil, classed(err)
	}
	return results, nil
}

// single says whether all keys are on one server.
func (s *Store) single() bool {
	_, single := s.client.(*redis.Client)
	return single
}

// lots yields the places of those that are renewed by one step. A cluster does a step on keys
// of one slot alone.
func (s *Store) lots(all []locks.Renewal) iter.Seq[[]int] {
	slots := map[string][]int{}
	for i := range all {
		slot := ""
		if !s.single() {
			slot = s.part(all[i].Name)
		}
		slots[slot] = append(slots[slot], i)
	}
	return func(yield func([]int) bool) {
		for _, of := range slots {
			for some := range slices.Chunk(of, renewals) {
				if !yield(some) {
					return
				}
			}
		}
	}
}

func (s *Store) renewSome(
	ctx context.Context, client redis.Scripter, all []locks.Renewal, some []int, results []locks.RenewResult,
) error {
	keys, args := make([]string, 0, 5*len(some)), make([]any, 0, 1+6*len(some))
	args = append(args, s.channels())
	for _, i := range some {
		q := &all[i]
		keys = appendKeys(keys, s.part(q.Name), q.Key)
		args = append(args, q.Key, q.ID, q.Version, micros(q.Lease), q.NewVersion, optional(q.Data))
	}
	a, err := s.runBy(ctx, client, s.renew, keys, args...)
	if err != nil {
		return err
	}
	for n, i := range some {
		results[i] = a.at(n).renewed()
	}
	return nil
}

// optional writes a string that may be missing as the scripts have it.
func optional(s *string) string {
	if s == nil {
		return ""
	}
	return "=" + *s
}

func micros(d time.Duration) int64 { return int64(d / time.Microsecond) }
