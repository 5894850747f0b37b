package redisstore

import (
	"context"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/ambit-go/ambit/locks"
)

// hints tells those who wait for a lock that it may be granted. One subscription serves
// the whole store; it begins with the first that listens.
type hints struct {
	s *Store

	mu     sync.Mutex
	closed bool
	// listeners by the key of a lock. A message names no tenant: a hint too many does no
	// harm.
	listeners map[string][]chan struct{}
	sub       *redis.PubSub
	joined    sync.WaitGroup
}

func (h *hints) init(s *Store) { h.s, h.listeners = s, map[string][]chan struct{}{} }

// Listen is a method of locks.Store.
func (s *Store) Listen(name locks.Name) (<-chan struct{}, func()) {
	h, c := &s.hints, make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners[name.Key] = append(h.listeners[name.Key], c)
	if h.sub == nil && !h.closed {
		h.sub = s.client.Subscribe(context.Background(), s.channels()+s.id)
		messages := h.sub.ChannelWithSubscriptions()
		h.joined.Go(func() { h.listen(messages) })
	}
	return c, func() { h.stop(name.Key, c) }
}

func (h *hints) stop(key string, c chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	left := slices.DeleteFunc(h.listeners[key], func(other chan struct{}) bool { return other == c })
	if h.listeners[key] = left; len(left) == 0 {
		delete(h.listeners, key)
	}
}

func (h *hints) listen(messages <-chan any) {
	for m := range messages {
		h.mu.Lock()
		switch m := m.(type) {
		case *redis.Message:
			hint(h.listeners[m.Payload])
		case *redis.Subscription: // hints may have been missed before
			for _, all := range h.listeners {
				hint(all)
			}
		}
		h.mu.Unlock()
	}
}

// hint gives each a hint that has none yet.
func hint(all []chan struct{}) {
	for _, c := range all {
		select {
		case c <- struct{}{}:
		default:
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
