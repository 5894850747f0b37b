package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
)

// progressEvery is the time between two lines of progress.
const progressEvery = 2 * time.Second

// progress tells how far the work has come, while it does come further.
func (s *studio) progress(ctx context.Context) error {
	var last string
	_, err := async.Repeat(ctx, async.Every(progressEvery), func(context.Context) error {
		queued, inProgress := s.queue.Len()
		done := s.book.count()
		line := fmt.Sprintf("%d made, %d in progress, %d queued, %d given up", done.made, inProgress, queued, done.givenUp)
		if line != last && queued+inProgress > 0 {
			s.book.trouble("%s", line)
		}
		last = line
		return nil
	}, async.AfterInterval()).Await(ctx, 0)
	return err
}

// report tells what was not finished, what was given up or left out, and the
// statistics of the queue. Nobody works any more.
func (s *studio) report() {
	s.reportUnfinished()
	s.reportGivenUp()
	s.reportGaps()
	s.reportStats()
}

func (s *studio) reportUnfinished() {
	if !s.looked.Load() {
		s.book.say("\nthe folder was not looked through to its end: there may be more to do\n")
	}
	names := s.queue.Queued()
	if len(names) == 0 {
		return
	}
	s.book.say("\nunfinished: %d\n", len(names))
	for _, name := range names {
		s.book.say("  %s: %s\n", shown(name), s.book.standing(name))
	}
}

// standing returns where a picture stands that is not finished.
func (b *book) standing(name string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var p page
	if known := b.pages[name]; known != nil {
		p = *known
	}
	state := "queued"
	switch {
	case p.stopped:
		state = "stopped while in progress"
	case p.failed > 0:
		state = "delayed"
	}
	if p.failed > 0 {
		state += fmt.Sprintf(", failed %d of %d: %v", p.failed, b.cfg.attempts, p.err)
	}
	return state
}

func (s *studio) reportGivenUp() {
	buried := s.book.buried // nobody else is there
	if len(buried) == 0 {
		return
	}
	s.book.say("\ngiven up, until they change: %d\n", len(buried))
	for _, name := range slices.Sorted(maps.Keys(buried)) {
		s.book.say("  %s: %v\n", shown(name), buried[name].err)
	}
}

func (s *studio) reportGaps() {
	missed := s.book.gaps.unread() // nobody else is there
	if len(missed) == 0 {
		return
	}
	s.book.say("\nnot looked into: %d\n", len(missed))
	for _, g := range missed {
		s.book.say("  %s: %s\n", shown(g.name), s.book.gaps[g])
	}
}

func (s *studio) reportStats() {
	st, done := s.queue.Stats(), s.book.count()
	var b strings.Builder
	line := func(name string, n uint64, note string) { fmt.Fprintf(&b, "  %-10s %6d  %s\n", name, n, note) }
	line("added", st.Added, "to the queue")
	line("duplicates", st.Duplicates, "found changed while queued already")
	line("taken", st.Taken, "by a consumer")
	line("done", st.Done, fmt.Sprintf("%d thumbnails made, %d removed", done.made, done.removed))
	line("failed", st.Failed, "attempts")
	line("returned", st.Returned, "to the queue, to be tried again")
	line("dead", st.Dead, "given up")
	line("removed", st.Removed, "from the queue, for they changed before another attempt")
	s.book.say("\nthe queue\n%s", b.String())
	s.book.say("  on average %v ready before it was taken, %v in progress\n",
		average(st.QueuedTime, st.Taken), average(st.InProgressTime, st.Done+st.Dead+st.Returned))
}

func average(sum time.Duration, n uint64) time.Duration {
	return (sum / time.Duration(max(n, 1))).Round(10 * time.Microsecond)
}
