package redisstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/clock"
)

// hints tells those who wait that something is due earlier than they know. It
// listens from the first wait on, on one connection for all queues.
type hints struct {
	s  *Store
	id string // of the store: what is for one of its sleepers begins with it

	mu     sync.Mutex
	of     map[string]*sleepers // by channel
	sub    *redis.PubSub
	closed bool
	joined sync.WaitGroup
}

// sleepers are the workers of this store that wait for tasks of one queue.
type sleepers struct {
	byName map[string]uint32 // the workers that have claimed, and the numbers they have
	all    map[uint32]*sleeper
	last   uint32
}

// A sleeper is what was heard for one worker. The sleeper of number 0 is for those who are not known.
type sleeper struct {
	n    uint32        // how many messages
	next chan struct{} // closed, and replaced, by the next, or by a new subscription
	used time.Time
}

func (h *hints) init(s *Store) { h.s, h.id, h.of = s, rand.Text(), map[string]*sleepers{} }

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

// forgotten is how long a worker may not have claimed until its number is forgotten.
const forgotten = time.Hour

func (h *hints) sleepersLocked(channel string) *sleepers {
	of := h.of[channel]
	if of == nil {
		of = &sleepers{byName: map[string]uint32{}, all: map[uint32]*sleeper{0: {next: make(chan struct{})}}}
		h.of[channel] = of
	}
	return of
}

// number returns the number of a worker, and forgets those of others when it is a new one.
func (of *sleepers) number(worker string) uint32 {
	number, known := of.byName[worker]
	if !known {
		for other, number := range of.byName {
			if time.Since(of.all[number].used) > forgotten {
				delete(of.byName, other)
				delete(of.all, number)
			}
		}
		of.last++
		number = of.last
		of.byName[worker], of.all[number] = number, &sleeper{next: make(chan struct{})}
	}
	of.all[number].used = time.Now()
	return number
}

// seen returns which worker asks and how many hints there were for it, and the name under which
// the server is to have it sleep. A claim asks before it is sent.
func (h *hints) seen(channel, worker string) (seen uint64, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	of := h.sleepersLocked(channel)
	number := of.number(worker)
	return uint64(number)<<32 | uint64(of.all[number].n), fmt.Sprintf("%s:%d", h.id, number)
}

// after returns what is closed at the next hint for the worker that seen is of, and whether there
// were more than seen already.
func (h *hints) after(ctx context.Context, channel string, seen uint64) (next <-chan struct{}, missed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sub == nil && !h.closed {
		ctx = context.WithoutCancel(ctx)
		h.sub = h.s.client.PSubscribe(ctx)
		h.joined.Add(1)
		go h.listen(ctx, h.sub)
	}
	of := h.sleepersLocked(channel)
	one := of.all[uint32(seen>>32)]
	if one == nil {
		one = of.all[0]
	}
	return one.next, h.closed || one.n != uint32(seen)
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
			h.wake(m.Channel, m.Payload)
		case *redis.Subscription: // the first, or one after the connection was lost
			h.wakeAll()
		}
	}
}

// wake wakes those of a channel that are named, or all if nobody is. Who is not known hears all.
func (h *hints) wake(channel, names string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	of := h.of[channel]
	switch {
	case of == nil:
		return
	case names == "":
		of.wakeAll()
		return
	}
	of.all[0].wake()
	for name := range strings.SplitSeq(names, " ") {
		if number, ours := strings.CutPrefix(name, h.id+":"); ours {
			n, _ := strconv.ParseUint(number, 10, 32)
			if one := of.all[uint32(n)]; one != nil && n > 0 {
				one.wake()
			}
		}
	}
}

func (of *sleepers) wakeAll() {
	for _, one := range of.all {
		one.wake()
	}
}

func (one *sleeper) wake() {
	one.n++
	close(one.next)
	one.next = make(chan struct{})
}

// wakeAll wakes everybody: nobody knows what was said while nobody listened.
func (h *hints) wakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, of := range h.of {
		of.wakeAll()
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
