package redisstore

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/hint"
)

// hints tells those who wait for a lock that it may be granted. One subscription serves
// the whole store; it begins with the first that listens.
type hints struct {
	s *Store
	// by the key of a lock: a message names no tenant, and a hint too many does no harm.
	board hint.Board[string]

	mu     sync.Mutex
	closed bool
	sub    *redis.PubSub
	joined sync.WaitGroup
}

// Listen is a method of locks.Store.
func (s *Store) Listen(name locks.Name) (<-chan struct{}, func()) {
	c, stop := s.hints.board.Listen(name.Key)
	s.hints.subscribe()
	return c, stop
}

func (h *hints) subscribe() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sub != nil || h.closed {
		return
	}
	h.sub = h.s.client.Subscribe(context.Background(), h.s.channels()+h.s.id)
	messages := h.sub.ChannelWithSubscriptions()
	h.joined.Go(func() { h.listen(messages) })
}

func (h *hints) listen(messages <-chan any) {
	for m := range messages {
		switch m := m.(type) {
		case *redis.Message:
			h.board.Hint(m.Payload)
		case *redis.Subscription: // hints may have been missed before
			h.board.HintAll()
		}
	}
}

func (h *hints) close() (err error) {
	h.mu.Lock()
	sub := h.sub
	h.closed = true
	h.mu.Unlock()
	if sub != nil {
		err = sub.Close()
	}
	h.joined.Wait()
	return err
}
