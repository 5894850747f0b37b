package redisstore

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/ambit-go/ambit/taskqueue"
)

// A script is one of the steps. The server is told its hash, and its text only if it
// does not know that.
type script struct {
	text, hash string
	// once: the answer is another one when it is carried out again, so the client must
	// not send it again by itself when an answer is lost.
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
	if s.closed.Load() {
		return nil, taskqueue.ErrClosed
	}
	if err := taskqueue.CheckName("queue", queue); err != nil {
		return nil, err
	}
	keys := s.keys.of(s, queue)
	call := make([]any, 0, 2+len(keys)+len(args))
	call = append(call, "evalsha", script.hash)
	call = append(call, keys...)
	call = append(call, args...)
	got, err := s.send(ctx, script.once, call)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		call[0], call[1] = "eval", script.text
		got, err = s.send(ctx, script.once, call)
	}
	if err != nil {
		return nil, fmt.Errorf("taskqueue: redis: %w", err)
	}
	return got, nil
}

// send sends a command, and once means that it is not sent again.
func (s *Store) send(ctx context.Context, once bool, call []any) (any, error) {
	if !once {
		return s.client.Do(ctx, call...).Result()
	}
	cmd := redis.NewCmd(ctx, call...)
	_ = s.client.Process(ctx, onceOnly{cmd}) // cmd has the error
	return cmd.Result()
}

// onceOnly is a command that go-redis does not send again.
type onceOnly struct{ *redis.Cmd }

func (onceOnly) NoRetry() bool { return true }
