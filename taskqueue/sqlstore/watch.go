package sqlstore

import (
	"context"
	"database/sql"
	"time"
)

// every is how long the watcher sleeps between two looks at the file.
const every = 2 * time.Millisecond

// watch looks for changes of the file, by any process, until ctx is done. SQLite keeps a
// number that a connection sees change with every commit of another one, and to read it takes
// some microseconds. Only then one number is read of each queue that somebody waits for, and
// only those hinted of which that has changed: a hint makes its reader write, and would
// otherwise wake all other processes.
func (s *Store) watch(ctx context.Context, f *file, path string) {
	for ctx.Err() == nil {
		s.watchOnce(ctx, f, path)
		sleep(ctx, time.Second)
	}
}

// watchOnce ends by itself only if the file cannot be read.
func (s *Store) watchOnce(ctx context.Context, f *file, path string) {
	db, err := sql.Open("sqlite", fileURL(path)+"?_pragma=busy_timeout(0)&_pragma=query_only(1)")
	if err != nil {
		return
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1) // the number is that of a connection
	changed, err := db.PrepareContext(ctx, "PRAGMA data_version")
	if err != nil {
		return
	}
	defer func() { _ = changed.Close() }()
	last := int64(-1)
	for ctx.Err() == nil {
		pause := every
		var number int64
		if err := changed.QueryRowContext(context.Background()).Scan(&number); err != nil && !isBusy(err) {
			return
		} else if err == nil && number != last {
			began := time.Now()
			s.lookAtWakes(ctx, f)
			last = number
			pause = max(every, 3*time.Since(began)) // never more than a quarter of the time
		}
		sleep(ctx, pause)
	}
}

// lookAtWakes hints the queues whose wakes have changed.
func (s *Store) lookAtWakes(ctx context.Context, f *file) {
	for _, queue := range s.hints.watched() {
		if wakes, err := f.wakes(ctx, queue); err == nil {
			s.hints.saw(queue, wakes)
		}
	}
}

// wakes returns how often others were told of a queue.
func (f *file) wakes(ctx context.Context, queue string) (n int64, err error) {
	err = f.transact(ctx, reads, func(t tx) error {
		return t.run(row("SELECT wakes FROM tq_queue WHERE queue = $1", []any{queue}, &n))
	})
	return n, err
}

// watches has the watcher look at a queue from now on. It reports whether it did not before.
func (s *Store) watches(ctx context.Context, queue string) (began bool, err error) {
	s.hints.mu.Lock()
	known := s.hints.hintLocked(queue).watched
	s.hints.mu.Unlock()
	if known {
		return false, nil
	}
	wakes, err := s.db.(*file).wakes(ctx, queue)
	if err == nil {
		began = !s.hints.saw(queue, wakes)
	}
	return began, err
}

// sleep lends nobody the slot of a limit of package async, as async.Sleep does: whoever has that next may wait
// for the transaction that sleeps.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
