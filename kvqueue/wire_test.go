package kvqueue_test

import (
	"bytes"
	"context"
	"iter"
	"sync"
	"time"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// A cut is a store whose network can be taken away, and can be slow.
type cut struct {
	kvqueue.KV
	delay func() time.Duration // of each message; nil: none

	mu      sync.Mutex
	gone    chan struct{}   // nil: the network is there
	last    kvqueue.Session // the last that was begun
	watches map[chan error]struct{}
	commits func(guards []kvqueue.Guard, writes []kvqueue.Write) error // decides what comes of a transaction, before it is sent
}

func newCut(kv kvqueue.KV) *cut { return &cut{KV: kv, watches: map[chan error]struct{}{}} }

func (c *cut) off() { c.mu.Lock(); defer c.mu.Unlock(); c.gone = make(chan struct{}) }

func (c *cut) on() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone != nil {
		close(c.gone)
		c.gone = nil
	}
}

// breakWatches ends all watches with an error.
func (c *cut) breakWatches(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.watches {
		select {
		case w <- err:
		default:
		}
	}
}

// endSession ends the session of the handle behind its back.
func (c *cut) endSession() {
	c.mu.Lock()
	s := c.last
	c.mu.Unlock()
	_ = s.End(context.Background())
}

// intercept has f see each transaction before it is sent, but those that only raise the floor.
// An error of f is its answer.
func (c *cut) intercept(f func(guards []kvqueue.Guard, writes []kvqueue.Write) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.commits = f
}

// raises says whether a transaction raises the floor and does nothing else. It comes beside
// others at any time, and nobody waits for it.
func raises(w []kvqueue.Write) bool { return len(w) == 1 && bytes.HasSuffix(w[0].Key, []byte("/h")) }

// faults has f say what goes wrong with each transaction, but those that only raise the floor.
func faults(f func(guards []kvqueue.Guard, writes []kvqueue.Write) memkv.Fault) memkv.Option {
	return memkv.Faults(func(guards []kvqueue.Guard, writes []kvqueue.Write) memkv.Fault {
		if raises(writes) {
			return memkv.None
		}
		return f(guards, writes)
	})
}

// wait waits until the network is there, and for the delay.
func (c *cut) wait(ctx context.Context) error {
	c.mu.Lock()
	gone := c.gone
	c.mu.Unlock()
	if gone != nil {
		select {
		case <-gone:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if c.delay != nil {
		select {
		case <-time.After(c.delay()):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (c *cut) Read(ctx context.Context, r ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev, error) {
	if err := c.wait(ctx); err != nil {
		return nil, 0, err
	}
	results, rev, err := c.KV.Read(ctx, r...)
	if e := c.wait(ctx); e != nil {
		return nil, 0, e
	}
	return results, rev, err
}

func (c *cut) Commit(ctx context.Context, g []kvqueue.Guard, w []kvqueue.Write) (kvqueue.Rev, error) {
	if err := c.wait(ctx); err != nil {
		return 0, err
	}
	c.mu.Lock()
	f := c.commits
	c.mu.Unlock()
	if f != nil && !raises(w) {
		if err := f(g, w); err != nil {
			return 0, err
		}
	}
	rev, err := c.KV.Commit(context.WithoutCancel(ctx), g, withInner(w)) // what was sent is on its way
	if e := c.wait(ctx); e != nil {
		return 0, kvqueue.ErrUnknown
	}
	return rev, err
}

func (c *cut) Watch(ctx context.Context, after kvqueue.Rev, prefixes ...[]byte) iter.Seq2[kvqueue.Event, error] {
	return func(yield func(kvqueue.Event, error) bool) {
		broken := make(chan error, 1)
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		c.mu.Lock()
		c.watches[broken] = struct{}{}
		c.mu.Unlock()
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.watches, broken)
		}()
		type change struct {
			e   kvqueue.Event
			err error
		}
		changes := make(chan change)
		ended := make(chan struct{})
		defer func() { cancel(); <-ended }()
		go func() {
			defer close(ended)
			for e, err := range c.KV.Watch(inner, after, prefixes...) {
				select {
				case changes <- change{e, err}:
				case <-inner.Done():
					return
				}
			}
		}()
		for {
			select {
			case x := <-changes:
				if c.wait(ctx) != nil || !yield(x.e, x.err) || x.err != nil {
					return
				}
			case err := <-broken:
				yield(kvqueue.Event{}, err)
				return
			case <-ctx.Done():
				return
			}
		}
	}
}

func (c *cut) Session(ctx context.Context, ttl time.Duration) (kvqueue.Session, error) {
	if err := c.wait(ctx); err != nil {
		return nil, err
	}
	s, err := c.KV.Session(ctx, ttl)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = s
	return cutSession{s, c}, nil
}

type cutSession struct {
	kvqueue.Session
	c *cut
}

func (s cutSession) Renew(ctx context.Context) error {
	if err := s.c.wait(ctx); err != nil {
		return err
	}
	return s.Session.Renew(ctx)
}

func (s cutSession) End(ctx context.Context) error {
	if err := s.c.wait(ctx); err != nil {
		return err
	}
	return s.Session.End(ctx)
}

// withInner gives the store its own sessions.
func withInner(writes []kvqueue.Write) []kvqueue.Write {
	own := make([]kvqueue.Write, len(writes))
	for i, w := range writes {
		if s, ok := w.Session.(cutSession); ok {
			w.Session = s.Session
		}
		own[i] = w
	}
	return own
}
