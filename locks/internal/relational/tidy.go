package relational

import (
	"context"
	"sync"
	"time"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
)

const (
	// tidyTime bounds what is done for one bucket: a database that is silent for so long is
	// not slow.
	tidyTime = time.Minute
	// tidyMost is how many records are looked at in one transaction.
	tidyMost = 100
)

// A tidier deletes records that nobody has used for long: for each that is made it looks at
// two of the same bucket, so as many go as come. It does so beside the callers, by a
// goroutine that ends when all is done: they wait for nothing, and a slow database gets it
// done later, not never.
type tidier struct {
	mu     sync.Mutex
	due    map[int64]int // how many records of a bucket are to be looked at
	now    int64         // the latest time of the store that is known
	runs   bool
	cancel context.CancelFunc // ends what the goroutine does; nil until the first has begun
	closed bool
	ended  sync.WaitGroup
}

// made notes that a record of a bucket was made.
func (s *Store) made(bucket, now int64) {
	t := &s.tidier
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	if t.due == nil {
		t.due = map[int64]int{}
	}
	t.due[bucket] += 2
	t.now = max(t.now, now)
	if t.runs {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.runs, t.cancel = true, cancel
	t.ended.Go(func() {
		defer cancel()
		s.tidy(ctx)
	})
}

// tidy goes on until nothing is due. After a failure it leaves the rest to the next that makes
// a record.
func (s *Store) tidy(ctx context.Context) {
	t := &s.tidier
	for failed := false; ; {
		t.mu.Lock()
		bucket, n, now := t.pickLocked()
		if n == 0 || failed || t.closed {
			t.runs = false
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		err := s.tidyBucket(ctx, bucket, now, n)
		t.mu.Lock()
		if failed = err != nil; !failed {
			if t.due[bucket] -= n; t.due[bucket] <= 0 {
				delete(t.due, bucket)
			}
		}
		t.mu.Unlock()
	}
}

func (t *tidier) pickLocked() (bucket int64, n int, now int64) {
	for bucket, n := range t.due {
		return bucket, min(n, tidyMost), t.now
	}
	return 0, 0, 0
}

// tidyBucket looks at records of a bucket in one transaction. A record that somebody else has
// locked is left out: it is in use.
func (s *Store) tidyBucket(ctx context.Context, bucket, now int64, most int) error {
	ctx, cancel := context.WithTimeout(ctx, tidyTime)
	defer cancel()
	names, err := s.Due(ctx, bucket, now, most)
	if err != nil || len(names) == 0 {
		return err
	}
	return s.Steps(ctx, names, func(now int64, rs map[locks.Name]*book.Resource) {
		for _, r := range rs {
			r.Purge(now)
		}
	})
}

// StopTidying ends what deletes records, and waits for it. A store calls it when it is closed.
func (s *Store) StopTidying() {
	t := &s.tidier
	t.mu.Lock()
	t.closed = true
	if t.cancel != nil {
		t.cancel()
	}
	t.mu.Unlock()
	t.ended.Wait()
}
