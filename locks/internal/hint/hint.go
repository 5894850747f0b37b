// Package hint tells those who wait for a lock that it may be granted.
package hint

import (
	"maps"
	"slices"
	"sync"
)

// A Board has the channels of those that wait, by what they wait for. The zero Board is
// ready. Any number of goroutines may use it.
type Board[K comparable] struct {
	mu        sync.Mutex
	listeners map[K][]chan struct{}
}

// Listen returns a channel that gets a value with each Hint for the key. It holds one, so
// a hint that comes before anybody waits is not lost. stop may be called more than once.
func (b *Board[K]) Listen(key K) (hints <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.listeners == nil {
		b.listeners = map[K][]chan struct{}{}
	}
	b.listeners[key] = append(b.listeners[key], c)
	return c, func() { b.stop(key, c) }
}

func (b *Board[K]) stop(key K, c chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := slices.DeleteFunc(b.listeners[key], func(other chan struct{}) bool { return other == c })
	if b.listeners[key] = left; len(left) == 0 {
		delete(b.listeners, key)
	}
}

// Hint tells all that listen for the key.
func (b *Board[K]) Hint(key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	tell(b.listeners[key])
}

// HintAll tells everybody: hints may have been missed.
func (b *Board[K]) HintAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, all := range b.listeners {
		tell(all)
	}
}

// Listening returns how many listen for the key.
func (b *Board[K]) Listening(key K) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.listeners[key])
}

// Keys returns for what somebody listens, in no order.
func (b *Board[K]) Keys() []K {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.listeners))
}

// Len returns for how many keys somebody listens.
func (b *Board[K]) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.listeners)
}

func tell(all []chan struct{}) {
	for _, c := range all {
		select {
		case c <- struct{}{}:
		default: // there is a hint already
		}
	}
}
