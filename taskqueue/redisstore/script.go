package redisstore

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue"
)

// A script is one of the steps. The server is told its hash, and its text only if it
// does not know that.
type script struct {
	text, hash string
	// once: the answer is another one when it is carried out again, so it is not sent again
	// when an answer is lost.
	once bool
}

func newScript(text string) *script {
	hash := sha1.Sum([]byte(text))
	return &script{text: text, hash: hex.EncodeToString(hash[:])}
}

// keys are the arguments that every script has: how many keys, the keys of a queue,
// and its channel. They are made once for each queue.
type keys struct{ queues sync.Map }

func (k *keys) of(s *Store, queue string) []any {
	if all, known := k.queues.Load(queue); known {
		return all.([]any)
	}
	base := s.base(queue)
	all := []any{len(names)}
	for _, n := range names {
		all = append(all, base+n)
	}
	all = append(all, s.channel(queue))
	k.queues.Store(queue, all)
	return all
}

// run runs a script on the keys of a queue. The channel comes before the args.
func (s *Store) run(ctx context.Context, script *script, queue string, args ...any) (any, error) {
	if err := taskqueue.CheckName("queue", queue); err != nil {
		return nil, err
	}
	keys := s.keys.of(s, queue)
	call := make([]any, 0, 2+len(keys)+len(args))
	call = append(call, "evalsha", script.hash)
	call = append(call, keys...)
	call = append(call, args...)
	return s.eval(ctx, script, call)
}

// eval sends a script by its hash, and by its text if the server does not know that.
func (s *Store) eval(ctx context.Context, script *script, call []any) (any, error) {
	step := sending{s: s, once: script.once}
	got, err := step.do(ctx, call)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		call[0], call[1] = "eval", script.text
		got, err = step.do(ctx, call)
	}
	return got, step.told(err)
}

// tries is how often a step is sent at most that is not answered, or not now.
const tries = 4

// pauses are the times between tries. A server that was killed is back after some of them, or
// the caller tries again when it likes.
var pauses = async.Jitter(0.5, async.Backoff(8*time.Millisecond, 500*time.Millisecond))

// A sending is one step on its way to the server. The client sends each command once: whether one
// that was refused may have been carried out before can be told only by who knows of all tries.
type sending struct {
	s     *Store
	once  bool // the answer is another one when the step is carried out again
	maybe bool // a try was not answered: it may have been carried out
}

// do sends a command until there is an answer.
func (o *sending) do(ctx context.Context, call []any) (any, error) {
	got, err := o.try(ctx, call)
	if err == nil || o.final(ctx, err) {
		return got, err
	}
	got, _ = async.Retry(ctx, pauses, func(context.Context) (_ any, e error) {
		if got, e = o.try(ctx, call); e == nil || o.final(ctx, e) {
			err = e
			return got, async.Final(e)
		}
		err = e
		return nil, e
	}, async.Attempts(tries-1), async.AfterInterval())
	return got, err
}

// try sends a command once.
func (o *sending) try(ctx context.Context, call []any) (any, error) {
	if o.s.closed.Load() {
		return nil, taskqueue.ErrClosed
	}
	cmd := redis.NewCmd(ctx, call...)
	_ = o.s.client.Process(ctx, onceOnly{cmd}) // cmd has the error
	got, err := cmd.Result()
	o.maybe = o.maybe || err != nil && !unsent(err)
	return got, err
}

// unsent reports whether err says that the server has not carried the command out.
func unsent(err error) bool {
	var dial *net.OpError
	var refused redis.Error
	return errors.As(err, &refused) || errors.As(err, &dial) && dial.Op == "dial" ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrClosed)
}

// final reports whether another try would be of no use, or do harm.
func (o *sending) final(ctx context.Context, err error) bool {
	var refused redis.Error
	return ctx.Err() != nil || o.once && o.maybe || errors.Is(err, redis.ErrClosed) || errors.Is(err, taskqueue.ErrClosed) ||
		errors.As(err, &refused) && !passing(refused)
}

// passing reports whether a server refuses what it may accept soon.
func passing(err redis.Error) bool {
	for _, p := range []string{"LOADING ", "READONLY ", "MASTERDOWN ", "CLUSTERDOWN ", "TRYAGAIN ", "NOREPLICAS ", "ERR max number of clients"} {
		if strings.HasPrefix(err.Error(), p) {
			return true
		}
	}
	return false
}

// told is the error of a step as callers are told it.
func (o *sending) told(err error) error {
	switch {
	case err == nil || errors.Is(err, taskqueue.ErrClosed) && !o.maybe:
		return err
	case o.maybe:
		err = &unansweredError{err}
	}
	return fmt.Errorf("taskqueue: redis: %w", err)
}

// An unansweredError is that of a step which may have been carried out, though the last try was
// refused.
type unansweredError struct{ err error }

func (e *unansweredError) Error() string { return e.err.Error() }
func (e *unansweredError) Unwrap() error { return e.err }

// onceOnly is a command that go-redis does not send again.
type onceOnly struct{ *redis.Cmd }

func (onceOnly) NoRetry() bool { return true }
