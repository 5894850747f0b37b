package redisstore

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"sync"

	"github.com/redis/go-redis/v9"

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
