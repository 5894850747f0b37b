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
	s *Store

	mu     sync.Mutex
	of     map[string]*hint // by channel
	missed uint64           // how many times hints may have been missed: one more with each subscription
	sub    *redis.PubSub
	closed bool
	joined sync.WaitGroup
}

// A hint is what was heard on the channel of a queue.
type hint struct {
	n    uint64        // how many messages
	next chan struct{} // closed, and replaced, by the next, or by a new subscription
}

func (h *hints) init(s *Store) { h.s, h.of = s, map[string]*hint{} }

// Wait is a method of taskqueue.Store.
func (s *Store) Wait(ctx context.Context, queue string, seen uint64, until time.Time) error {
	if err := taskqueue.CheckName("queue", queue); err != nil {
		return err
	}
	next, missed := s.hints.after(ctx, s.channel(queue), seen)
	if !missed {
		timer := time.NewTimer(clock.Until(until))
		defer timer.Stop()
		select {
		case <-next:
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if s.closed.Load() {
		return taskqueue.ErrClosed
	}
	return nil
}

func (h *hints) hintLocked(channel string) *hint {
	c := h.of[channel]
	if c == nil {
		c = &hint{next: make(chan struct{})}
		h.of[channel] = c
	}
	return c
}

// seen returns how many hints there were on a channel. A claim asks before it is sent.
func (h *hints) seen(channel string) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hintLocked(channel).n + h.missed
}

// after returns what is closed at the next hint on a channel, and whether there were
// more than seen already.
func (h *hints) after(ctx context.Context, channel string, seen uint64) (next <-chan struct{}, missed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sub == nil && !h.closed {
		ctx = context.WithoutCancel(ctx)
		h.sub = h.s.client.PSubscribe(ctx)
		h.joined.Add(1)
		go h.listen(ctx, h.sub)
	}
	c := h.hintLocked(channel)
	return c.next, h.closed || c.n+h.missed != seen
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

// quiet is how long the connection may be silent until it is looked after. Workers find
// out by themselves what is due, so this need not be soon.
const quiet = 30 * time.Second

func (h *hints) listen(ctx context.Context, sub *redis.PubSub) {
	defer h.joined.Done()
	_ = sub.PSubscribe(ctx, pattern(h.s.prefix)+":{*}:wake") // else it is made up for when there is a connection
	for m := range sub.ChannelWithSubscriptions(redis.WithChannelHealthCheckInterval(quiet)) {
		switch m := m.(type) {
		case *redis.Message:
			h.wake(m.Channel)
		case *redis.Subscription: // the first, or one after the connection was lost
			h.wakeAll()
		}
	}
}

// wake wakes those who wait for a hint on a channel.
func (h *hints) wake(channel string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.of[channel]; c != nil {
		c.n++
		close(c.next)
		c.next = make(chan struct{})
	}
}

// wakeAll wakes everybody: nobody knows what was said while nobody listened.
func (h *hints) wakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.missed++
	for _, c := range h.of {
		close(c.next)
		c.next = make(chan struct{})
	}
}

// close wakes all that wait, and joins what listens.
func (h *hints) close() (err error) {
	h.mu.Lock()
	h.closed = true
	sub := h.sub
	h.mu.Unlock()
	h.wakeAll()
	if sub != nil {
		err = sub.Close()
	}
	h.joined.Wait()
	return err
}
