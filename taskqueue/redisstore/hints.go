package redisstore

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/clock"
)

// hints tells those who wait that something is due earlier than they know. It
// listens from the first wait on, on one connection for all queues.
type hints struct {
	s     *Store
	known sync.Map // names of queues that are registered

	mu     sync.Mutex
	wake   map[string]chan struct{} // by channel; closed, and taken out, at a hint
	sub    *redis.PubSub
	joined sync.WaitGroup
}

func (h *hints) init(s *Store) { h.s, h.wake = s, map[string]chan struct{}{} }

// Wait is a method of taskqueue.Store.
func (s *Store) Wait(ctx context.Context, queues []string, until time.Time) error {
	if s.closed.Load() {
		return taskqueue.ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.NewTimer(clock.Until(until))
	defer timer.Stop()
	woken := make(chan struct{}, 1)
	for _, q := range queues {
		hint := s.hints.of(ctx, s.channel(q))
		if len(queues) == 1 {
			woken = hint
			break
		}
		go func() {
			select {
			case <-hint:
				select {
				case woken <- struct{}{}:
				default:
				}
			case <-ctx.Done():
			}
		}()
	}
	select {
	case <-woken:
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if s.closed.Load() {
		return taskqueue.ErrClosed
	}
	return nil
}

// of returns what is closed at the next hint on a channel.
func (h *hints) of(ctx context.Context, channel string) chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.wake[channel]
	if c == nil {
		c = make(chan struct{})
		h.wake[channel] = c
	}
	if h.sub == nil && !h.s.closed.Load() {
		h.sub = h.s.client.PSubscribe(context.WithoutCancel(ctx), pattern(h.s.prefix)+":{*}:wake")
		h.joined.Add(1)
		go h.listen(h.sub.Channel())
	}
	return c
}

// pattern escapes what means something in a pattern of Redis.
func pattern(s string) string {
	var b []byte
	for i := range len(s) {
		switch s[i] {
		case '*', '?', '[', ']', '\\', '^':
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return string(b)
}

func (h *hints) listen(messages <-chan *redis.Message) {
	defer h.joined.Done()
	for m := range messages {
		h.mu.Lock()
		if c := h.wake[m.Channel]; c != nil {
			close(c)
			delete(h.wake, m.Channel)
		}
		h.mu.Unlock()
	}
}

// close wakes all that wait, and joins what listens.
func (h *hints) close() (err error) {
	h.mu.Lock()
	for channel, c := range h.wake {
		close(c)
		delete(h.wake, channel)
	}
	sub := h.sub
	h.mu.Unlock()
	if sub != nil {
		err = sub.Close()
	}
	h.joined.Wait()
	return err
}
