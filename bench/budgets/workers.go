package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/scheduler"
)

// An actor runs functions in order, one at a time.
type actor interface {
	post(f func())
	close() // everything has run when it returns
}

// workers returns B7 and B8.
func workers() []contest {
	var all []contest
	for _, producers := range []int{1, 8} {
		limit := map[int]float64{1: 1, 8: 1.3}[producers]
		all = append(all, contest{
			id: "B7", what: fmt.Sprintf("Post, %d producers", producers), ours: always(posts(newWorker, producers)),
			peers: []rival{
				{"actor on a channel of 1,024", limit, posts(newChannelActor, producers)},
				{"serializer as grpc's", 0.6, posts(newSerializer, producers)},
			},
		})
	}
	for _, depth := range []int{0, 1000, 100_000} {
		all = append(all,
			contest{id: "B8", what: fmt.Sprintf("Schedule, Cancel behind %d", depth), ours: scheduled(depth, 0), ns: 120, allocs: 1},
			contest{id: "B8", what: fmt.Sprintf("ScheduleAfter, Cancel among %d", depth), ours: scheduled(depth, time.Hour), ns: 350, allocs: 1})
	}
	return all
}

// posts is work that has producers post n functions in all to a new actor.
func posts(create func() actor, producers int) work {
	return func(n int) {
		a := create()
		var ran atomic.Int64
		count := func() { ran.Add(1) }
		var all sync.WaitGroup
		for i := range producers {
			all.Go(func() {
				for j := i; j < n; j += producers {
					a.post(count)
				}
			})
		}
		all.Wait()
		a.close()
		mustBe(int(ran.Load()) == n)
	}
}

// scheduled is work that schedules a task and cancels it, with depth others in
// the queue: after delay, or with none at once.
func scheduled(depth int, delay time.Duration) func() (work, func()) {
	return func() (work, func()) {
		w := scheduler.New(scheduler.Goroutines()).NewWorker(context.Background())
		schedule := func(time.Duration) scheduler.Task {
			t, err := w.Schedule(func(context.Context) {})
			must(err)
			return t
		}
		open := make(chan struct{})
		if delay > 0 {
			schedule = func(more time.Duration) scheduler.Task {
				t, err := w.ScheduleAfter(delay+more, func(context.Context) {})
				must(err)
				return t
			}
		} else {
			must(w.Post(func() { <-open }))
		}
		others := make([]scheduler.Task, depth)
		for i := range others {
			others[i] = schedule(time.Duration(i))
		}
		return func(n int) {
				for range n {
					mustBe(schedule(0).Cancel())
				}
			}, func() {
				for _, t := range others {
					t.Cancel()
				}
				close(open)
				must(w.Drain(context.Background()))
			}
	}
}

type workerActor struct{ w *scheduler.ExecutorWorker }

func newWorker() actor {
	return workerActor{scheduler.New(scheduler.Goroutines()).NewWorker(context.Background())}
}

func (a workerActor) post(f func()) { must(a.w.Post(f)) }
func (a workerActor) close()        { must(a.w.Drain(context.Background())) }

// channelActor is a goroutine that ranges over a channel.
type channelActor struct {
	c    chan func()
	done chan struct{}
}

func newChannelActor() actor {
	a := channelActor{make(chan func(), 1024), make(chan struct{})}
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

// serializer is grpc's shape: an unbounded buffer whose head is offered on a
// channel of one, and a goroutine that takes from it.
type serializer struct {
	mu      sync.Mutex
	c       chan func()
	backlog []func()
	closing bool
	done    chan struct{}
}

func newSerializer() actor {
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
