package batch_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/batch"
	"github.com/ambit-go/ambit/clitest"
)

func TestMain(m *testing.M) { os.Exit(clitest.LeakChecked(m).Run()) }

var (
	errDisk = errors.New("disk full")
	errStop = errors.New("stop")
)

// A sink is where items are flushed to. It keeps what it was given and when, and
// fails as often as it is told to.
type sink struct {
	t     *testing.T
	begin time.Time
	fails int // so many flushes fail with errDisk first

	mu      sync.Mutex
	takes   time.Duration // how long a flush takes
	busy    bool
	flushes [][]int // all calls
	at      []time.Duration
	got     []int // what was delivered
}

func newSink(t *testing.T) *sink { return &sink{t: t, begin: time.Now()} }

func (s *sink) flush(ctx context.Context, items []int) error {
	s.mu.Lock()
	assert.False(s.t, s.busy, "two flushes at a time")
	s.busy = true
	s.flushes = append(s.flushes, slices.Clone(items))
	s.at = append(s.at, time.Since(s.begin).Truncate(time.Millisecond))
	fails := s.fails > 0
	s.fails--
	takes := s.takes
	s.mu.Unlock()

	var err error
	if takes > 0 {
		err = async.Sleep(ctx, takes)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
	switch {
	case fails:
		return errDisk
	case err != nil:
		return err
	}
	s.got = append(s.got, items...)
	return nil
}

// slow has each flush from now on take d.
func (s *sink) slow(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takes = d
}

// calls returns what each flush so far was given.
func (s *sink) calls() [][]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.flushes)
}

func (s *sink) delivered() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

// inScope runs body in a scope with a batch, on a fake clock, and returns what the
// scope has returned.
func inScope(t *testing.T, body func(ctx context.Context, b *batch.Batch[int], s *sink) error, opts ...batch.Option) (s *sink, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		s = newSink(t)
		err = async.Scope(ctx, func(ctx context.Context) error {
			return body(ctx, batch.New(ctx, s.flush, opts...), s)
		})
	})
	return s, err
}

// add adds items, of which each is an Add of its own.
func add(t *testing.T, ctx context.Context, b *batch.Batch[int], items ...int) {
	t.Helper()
	for _, i := range items {
		assert.NoError(t, b.Add(ctx, i))
	}
}

// upTo returns the numbers from 1 to n.
func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i + 1
	}
	return all
}
