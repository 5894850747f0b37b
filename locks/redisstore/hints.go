package redisstore

import (
	"context"
	"maps"
	"slices"
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

	resumed map[*func()]struct{}
}

// Listen is a method of locks.Store.
func (s *Store) Listen(name locks.Name) (<-chan struct{}, func()) {
	c, stop := s.hints.board.Listen(name.Key)
	s.hints.subscribe()
	return c, stop
}

// Resumed is a method of locks.Resumer. The subscription has a connection of its own, which is
// at the server that the client thinks is the one: when it begins anew, that may be another,
// or one that was started again.
func (s *Store) Resumed(f func()) (stop func()) {
	h := &s.hints
	h.mu.Lock()
	if h.resumed == nil {
		h.resumed = map[*func()]struct{}{}
	}
	h.resumed[&f] = struct{}{}
	h.mu.Unlock()
	h.subscribe()
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.resumed, &f)
	}
}

// subscribe begins the subscription in a goroutine: to connect takes time.
func (h *hints) subscribe() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sub != nil || h.closed {
		return
	}
	sub := h.s.client.Subscribe(context.Background())
	h.sub = sub
	h.joined.Go(func() {
		_ = sub.Subscribe(context.Background(), h.s.channels()+h.s.id) // else it is done when there is a connection
		h.listen(sub.ChannelWithSubscriptions())
	})
}

func (h *hints) listen(messages <-chan any) {
	first := true
	for m := range messages {
		switch m := m.(type) {
		case *redis.Message:
			h.board.Hint(m.Payload)
		case *redis.Subscription: // hints may have been missed before
			h.board.HintAll()
			if !first {
				h.resume()
			}
			first = false
		}
	}
}

func (h *hints) resume() {
	h.mu.Lock()
	all := slices.Collect(maps.Keys(h.resumed))
	h.mu.Unlock()
	for _, f := range all {
		(*f)()
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
