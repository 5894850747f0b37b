package scheduler_test

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/ambit-go/ambit/scheduler"
)

// Other ways to run functions in order, one at a time, as programs have it: for
// comparison. Each is as small as it can be with nobody to cancel, nothing to
// refuse and no panic to survive.

type peer interface {
	post(f func())
	close() // everything has run when it returns
}

// peers are named as in the budgets of the design.
var peers = map[string]func() peer{
	"worker":     newWorkerPeer,
	"unbuffered": func() peer { return newChannelActor(0) },
	"buffered":   func() peer { return newChannelActor(1024) },
	"slice":      func() peer { return new(sliceQueue) },
	"serializer": newSerializer,
	"mailbox":    newMailbox,
}

type workerPeer struct{ w *scheduler.ExecutorWorker }

func newWorkerPeer() peer {
	return workerPeer{scheduler.New(scheduler.Goroutines()).NewWorker(context.Background())}
}

func (p workerPeer) post(f func()) { _ = p.w.Post(f) }
func (p workerPeer) close()        { _ = p.w.Drain(context.Background()) }

// channelActor is a goroutine that ranges over a channel.
type channelActor struct {
	c    chan func()
	done chan struct{}
}

func newChannelActor(capacity int) peer {
	a := channelActor{make(chan func(), capacity), make(chan struct{})}
	go func() {
		defer close(a.done)
		for f := range a.c {
			f()
		}
	}()
	return a
}

func (a channelActor) post(f func()) { a.c <- f }
func (a channelActor) close()        { close(a.c); <-a.done }

// sliceQueue is a slice under a mutex and a goroutine for each burst.
type sliceQueue struct {
	mu      sync.Mutex
	queue   []func()
	running bool
	idle    sync.WaitGroup
}

func (q *sliceQueue) post(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = append(q.queue, f)
	if !q.running {
		q.running = true
		q.idle.Go(q.run)
	}
}

func (q *sliceQueue) run() {
	for {
		q.mu.Lock()
		all := q.queue
		q.queue = nil
		if len(all) == 0 {
			q.running = false
			q.mu.Unlock()
			return
		}
		q.mu.Unlock()
		for _, f := range all {
			f()
		}
	}
}

func (q *sliceQueue) close() { q.idle.Wait() }

// serializer is grpc's shape: an unbounded buffer whose head is offered on a
// channel of one, and a goroutine that takes from it.
type serializer struct {
	mu      sync.Mutex
	c       chan func()
	backlog []func()
	closing bool
	done    chan struct{}
}

func newSerializer() peer {
	s := &serializer{c: make(chan func(), 1), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		for f := range s.c {
			s.load()
			f()
		}
	}()
	return s
}

func (s *serializer) post(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.backlog) == 0 {
		select {
		case s.c <- f:
			return
		default:
		}
	}
	s.backlog = append(s.backlog, f)
}

func (s *serializer) load() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.backlog) > 0 {
		select {
		case s.c <- s.backlog[0]:
			s.backlog[0] = nil
			s.backlog = s.backlog[1:]
		default:
		}
	} else if s.closing {
		s.closing = false
		close(s.c)
	}
}

func (s *serializer) close() {
	s.mu.Lock()
	if len(s.backlog) == 0 && len(s.c) == 0 {
		close(s.c)
	} else {
		s.closing = true
	}
	s.mu.Unlock()
	<-s.done
}

// mailbox is protoactor's shape: a linked queue that producers swap into
// without a lock, a flag that says whether somebody drains it, and a yield
// after 300 messages.
type mailbox struct {
	head   atomic.Pointer[message] // producers swap it
	tail   *message                // the drain's
	queued atomic.Int64
	busy   atomic.Bool
	idle   sync.WaitGroup
}

type message struct {
	next atomic.Pointer[message]
	f    func()
}

func newMailbox() peer {
	m := new(mailbox)
	m.tail = new(message)
	m.head.Store(m.tail)
	return m
}

func (m *mailbox) post(f func()) {
	n := &message{f: f}
	m.head.Swap(n).next.Store(n)
	m.queued.Add(1)
	m.wake()
}

func (m *mailbox) wake() {
	if m.busy.CompareAndSwap(false, true) {
		m.idle.Go(m.run)
	}
}

func (m *mailbox) run() {
	for i := 0; ; i++ {
		next := m.tail.next.Load()
		if next == nil {
			m.busy.Store(false)
			if m.queued.Load() > 0 {
				m.wake()
			}
			return
		}
		m.tail = next
		m.queued.Add(-1)
		f := next.f
		next.f = nil
		f()
		if i%300 == 299 {
			m.idle.Go(m.run)
			return
		}
	}
}

func (m *mailbox) close() { m.idle.Wait() }
