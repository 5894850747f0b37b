package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/jobqueue"
)

// A studio looks for pictures whose thumbnails are missing, and queues their names.
type studio struct {
	gallery
	once    bool
	every   time.Duration
	workers int
	queue   *queue

	mu     sync.Mutex
	found  map[string]time.Time // what the last look has found, and the times of the pictures then
	gaveUp map[string]time.Time // those that were given up
	lost   error                // of the first write that has failed
}

// run makes thumbnails until ctx is done, or once. It tells what is unfinished.
func (s *studio) run(ctx context.Context, folder string) error {
	s.pictures, s.thumbnails = folder, filepath.Join(folder, "thumbnails")
	s.queue = newQueue(s.update, s.tell, s.giveUp)
	if err := os.Mkdir(s.thumbnails, 0o777); err != nil && !os.IsExist(err) {
		return err
	}
	err := async.Scope(ctx, func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error { return s.queue.run(ctx, s.workers) }, async.Name("workers"))
		return s.look(ctx)
	})
	// A queued picture may agree by now: it was found while it was worked on.
	if left, e := s.stale(false); e == nil && len(left) > 0 {
		s.printf("unfinished: %q\n", slices.Sorted(maps.Keys(left)))
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil && len(s.gaveUp) > 0:
		return fmt.Errorf("%d pictures have no thumbnail", len(s.gaveUp))
	}
	return cmp.Or(err, s.lost)
}

// look queues what it finds, at once and every so often. Looking is late, but complete:
// it needs to know nothing of the order of changes, and the queue sees to it that
// what is found twice is done once.
func (s *studio) look(ctx context.Context) error {
	for first := true; ; first = false {
		stale, err := s.stale(first)
		if err != nil {
			return err
		}
		names := []string{}
		s.mu.Lock()
		s.found = stale
		maps.DeleteFunc(s.gaveUp, func(name string, _ time.Time) bool { _, ok := stale[name]; return !ok })
		for name, changed := range stale {
			if gaveUp, ok := s.gaveUp[name]; !ok || !gaveUp.Equal(changed) {
				delete(s.gaveUp, name)
				names = append(names, name)
			}
		}
		s.mu.Unlock()
		slices.Sort(names)
		s.queue.AddAll(names...)
		if s.once {
			return s.queue.Drain(ctx)
		}
		if err := async.Sleep(ctx, s.every); err != nil {
			return err
		}
	}
}

// giveUp notes a picture whose last attempt has failed. It has its attempts again
// when it has changed since it was found.
func (s *studio) giveUp(name string, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if changed, ok := s.found[name]; ok {
		s.gaveUp[name] = changed
	}
}

// tell says what becomes of the pictures.
func (s *studio) tell(e jobqueue.Event[string]) {
	switch e.Kind {
	case jobqueue.Done:
		s.printf("%q: done\n", e.Job)
	case jobqueue.Failed:
		s.printf("%q: attempt %d has failed: %v\n", e.Job, e.Attempt, e.Err)
	case jobqueue.Dead:
		s.printf("%q: given up after %d attempts: %v\n", e.Job, e.Attempt, e.Err)
	}
}

// printf prints, and keeps the first error: the work goes on without a reader.
func (s *studio) printf(format string, args ...any) {
	_, err := fmt.Printf(format, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = cmp.Or(s.lost, err)
}
