package main

import (
	"bytes"
	"context"
	"errors"
	"image"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
)

// These tests are about the queue of the program, without files and in virtual
// time: what is done with a picture is made up.

// studioThat returns one that does a job by calling make.
func studioThat(cfg config, make func(ctx context.Context, name string) error) (*studio, *bytes.Buffer) {
	var out bytes.Buffer
	s := newStudio(cfg, cli.Streams{Out: &out, Err: &out})
	s.make = make
	s.looked.Store(true)
	return s, &out
}

// consume has the consumers work until nothing is left.
func (s *studio) consume(ctx context.Context) error {
	s.looking.Store(false)
	return s.queue.Consume(ctx, s.cfg.workers, 1, s.do)
}

var five = config{workers: 2, attempts: 5, delay: time.Second, limit: time.Hour}

func TestAFailingPictureIsTriedFiveTimesWithDelaysAndGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		s, out := studioThat(five, func(context.Context, string) error {
			at = append(at, time.Since(began))
			return errors.New("no luck")
		})
		s.queue.Add("a.jpg")
		require.NoError(t, s.consume(t.Context()))
		assert.Equal(t, []time.Duration{0, 1 * time.Second, 3 * time.Second, 7 * time.Second, 15 * time.Second}, at)
		assert.Equal(t, `a.jpg: failed, attempt 1 of 5: no luck; the next one in 1s
a.jpg: failed, attempt 2 of 5: no luck; the next one in 2s
a.jpg: failed, attempt 3 of 5: no luck; the next one in 4s
a.jpg: failed, attempt 4 of 5: no luck; the next one in 8s
a.jpg: given up after 5 attempts: no luck
`, out.String())
		assert.Equal(t, 1, s.book.count().givenUp)
	})
}

// Others go on while one waits.
func TestAFailingPictureDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		cfg := five
		cfg.workers = 1
		s, _ := studioThat(cfg, func(_ context.Context, name string) error {
			order = append(order, name)
			if name == "bad.jpg" && len(order) < 4 {
				return errors.New("no luck")
			}
			return nil
		})
		s.queue.AddAll("bad.jpg", "a.jpg", "b.jpg")
		require.NoError(t, s.consume(t.Context()))
		assert.Equal(t, []string{"bad.jpg", "a.jpg", "b.jpg", "bad.jpg"}, order)
	})
}

func TestAPictureThatChangesOftenIsQueuedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		s, _ := studioThat(five, func(context.Context, string) error { runs++; return nil })
		s.cfg.settle = time.Second
		for range 100 {
			s.add("a.jpg")
		}
		assert.Equal(t, []string{"a.jpg"}, s.queue.Queued())
		require.NoError(t, s.consume(t.Context()))
		assert.Equal(t, 1, runs)
		assert.EqualValues(t, 99, s.queue.Stats().Duplicates)
	})
}

// However often it changes while its thumbnail is made, that is made once more.
func TestAPictureThatChangesWhileItsThumbnailIsMadeIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		var s *studio
		s, _ = studioThat(five, func(context.Context, string) error {
			if runs++; runs == 1 {
				for range 10 {
					s.add("a.jpg")
				}
			}
			return nil
		})
		s.add("a.jpg")
		require.NoError(t, s.consume(t.Context()))
		assert.Equal(t, 2, runs)
	})
}

// What failed because it was not complete is tried as soon as it has changed, and
// with all its attempts.
func TestAChangeEndsTheDelayOfAFailedPicture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var whole atomic.Bool
		s, out := studioThat(five, func(context.Context, string) error {
			if whole.Load() {
				return nil
			}
			return errors.New("half")
		})
		s.add("a.jpg")
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			s.looking.Store(true)
			async.Go(ctx, func(ctx context.Context) error { return s.queue.Consume(ctx, 1, 1, s.do) })
			if err := async.Sleep(ctx, 7*time.Second+time.Second/2); err != nil { // four attempts
				return err
			}
			whole.Store(true)
			s.looking.Store(false) // the end of what comes next is that of everything
			s.add("a.jpg")
			return nil
		}))
		assert.Equal(t, 7*time.Second+time.Second/2, time.Since(began))
		assert.Contains(t, out.String(), "attempt 4 of 5")
		assert.Zero(t, s.book.count().givenUp)
	})
}

// A decoder that panics over a picture does not end the program.
func TestAPanicCostsAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, out := studioThat(five, func(context.Context, string) error { panic("index out of range") })
		s.queue.Add("a.jpg")
		require.NoError(t, s.consume(t.Context()))
		assert.Contains(t, out.String(), "a.jpg: given up after 5 attempts: ")
		assert.Contains(t, out.String(), "index out of range")
	})
}

func TestAnAttemptHasALimitOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := five
		cfg.limit = time.Minute
		s, out := studioThat(cfg, func(ctx context.Context, _ string) error { <-ctx.Done(); return context.Cause(ctx) })
		s.queue.Add("a.jpg")
		require.NoError(t, s.consume(t.Context()))
		assert.Contains(t, out.String(), "context deadline exceeded")
		assert.Contains(t, out.String(), "a.jpg: given up after 5 attempts: ")
	})
}

// Whoever can name a file can neither forge a line nor steer a terminal.
func TestNamesAreToldAsOneLineWithoutControlCharacters(t *testing.T) {
	for name, want := range map[string]string{"a b/é.jpg": "a b/é.jpg", "a\\b.jpg": `"a\\b.jpg"`, `"a.jpg`: `"\"a.jpg"`, "a\nthe queue.jpg": `"a\nthe queue.jpg"`, "\x1b[31m\xff.jpg": `"\x1b[31m\xff.jpg"`} {
		assert.Equal(t, want, shown(name))
	}
	synctest.Test(t, func(t *testing.T) {
		cfg := five
		cfg.verbose = true
		s, out := studioThat(cfg, func(context.Context, string) error { panic("no luck") })
		s.queue.AddAll("a\x1b.jpg", "a\x1b.jpg")
		require.NoError(t, s.consume(t.Context()))
		s.queue.Add("b\x1b.jpg")
		s.book.made("c\x1b.jpg", image.Pt(1, 1))
		s.book.removed("d\x1b.jpg")
		s.report()
		for _, line := range []string{`"a\x1b.jpg": queued`, `"a\x1b.jpg": not queued`, `"a\x1b.jpg": begun`, `"a\x1b.jpg": failed`,
			`"a\x1b.jpg": given up`, `  "a\x1b.jpg": `, `"c\x1b.jpg": a thumbnail`, `"d\x1b.jpg": gone`} {
			assert.Contains(t, "\n"+out.String(), "\n"+line)
		}
		assert.NotContains(t, out.String(), "\x1b")
	})
}

// Everything that was not finished is told, with where it stands; what was just
// finished is not, and nobody has failed by being stopped.
func TestAStopListsEverythingUnfinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancelCause(t.Context())
		s, out := studioThat(five, func(ctx context.Context, name string) error {
			switch name {
			case "bad.jpg":
				return errors.New("no luck")
			case "finished.jpg":
				synctest.Wait()
				stop(&cli.SignalError{Signal: syscall.SIGINT})
				synctest.Wait() // everybody else has heard of it
				return nil      // but the thumbnail is there
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
		s.queue.AddAll("bad.jpg", "slow.jpg", "finished.jpg", "next.jpg", "last.jpg")
		err := s.consume(ctx)
		assert.Equal(t, 130, cli.Status(err))
		out.Reset()
		s.reportUnfinished()
		assert.Equal(t, `
unfinished: 4
  slow.jpg: stopped while in progress
  next.jpg: queued
  last.jpg: queued
  bad.jpg: delayed, failed 1 of 5: no luck
`, out.String())
		assert.EqualValues(t, 1, s.queue.Stats().Failed)
	})
}
