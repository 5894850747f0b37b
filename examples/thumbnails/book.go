package main

import (
	"errors"
	"fmt"
	"image"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/jobqueue"
)

// A book holds what the queue does not tell when it is asked: why a picture
// waits, and which were given up. It also does the talking, one line at a time.
type book struct {
	cfg config

	mu     sync.Mutex
	out    cli.Out
	err2   cli.Out          // for trouble
	pages  map[string]*page // of what is queued or in progress, and was tried
	buried map[string]*page // of what was given up
	gaps   gaps
	done   tally
}

// A page is about one picture.
type page struct {
	changed time.Time // the picture, as it was last tried
	failed  int       // attempts
	err     error     // of the last one
	trying  bool      // it is in progress
	stopped bool      // it was in progress when everything was stopped
}

// A tally counts what has been done.
type tally struct{ made, removed, givenUp, unread int }

// missing returns what there may be no thumbnails of, as an error.
func (t tally) missing() error {
	var all []string
	if t.givenUp > 0 {
		all = append(all, plural(t.givenUp, "picture was", "pictures were")+" given up")
	}
	if t.unread > 0 {
		all = append(all, plural(t.unread, "place", "places")+" could not be looked into")
	}
	return errors.New(strings.Join(all, ", "))
}

func newBook(cfg config, std cli.Streams) *book {
	return &book{
		cfg: cfg, out: cli.Out{W: std.Out}, err2: cli.Out{W: std.Err},
		pages: make(map[string]*page), buried: make(map[string]*page), gaps: make(gaps),
	}
}

// observe is told what becomes of every job.
func (b *book) observe(e jobqueue.Event[string]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	name := shown(e.Job)
	switch e.Kind {
	case jobqueue.Added:
		b.stepLocked("%s: queued\n", name)
		return
	case jobqueue.Rejected:
		b.stepLocked("%s: not queued: %v\n", name, reason(e.Err))
		return
	case jobqueue.Done, jobqueue.Removed:
		delete(b.pages, e.Job)
		return
	}
	switch p := b.pageLocked(e.Job); e.Kind {
	case jobqueue.Taken:
		p.trying, p.stopped = true, false
		b.stepLocked("%s: begun\n", name)
	case jobqueue.Stopped:
		p.trying, p.stopped = false, true
	case jobqueue.Failed:
		p.trying, p.err = false, e.Err
		p.failed++
		b.out.Printf("%s: failed, attempt %d of %d: %v; the next one in %v\n", name, p.failed, b.cfg.attempts, e.Err, b.cfg.retry()(p.failed))
	case jobqueue.Dead:
		p.trying, p.err = false, e.Err
		p.failed++
		delete(b.pages, e.Job)
		b.buried[e.Job] = p
		b.out.Printf("%s: given up after %s: %v\n", name, plural(p.failed, "attempt", "attempts"), e.Err)
	}
}

func (b *book) pageLocked(name string) *page {
	p := b.pages[name]
	if p == nil {
		p = new(page)
		b.pages[name] = p
	}
	return p
}

// begin notes that a picture is tried as it was at the time it was changed.
func (b *book) begin(name string, changed time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pageLocked(name).changed = changed
}

// knows reports whether a picture, as it was at the time it was changed, is being
// tried or was given up.
func (b *book) knows(name string, changed time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.buried[name]; p != nil && p.changed.Equal(changed) {
		return true
	}
	p := b.pages[name]
	return p != nil && p.trying && p.changed.Equal(changed)
}

// forgive is for a picture that has changed: it may be none of those given up any
// more. It reports whether it waits for another attempt.
func (b *book) forgive(name string) (delayed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.buried, name)
	p := b.pages[name]
	return p != nil && p.failed > 0 && !p.trying
}

// made and removed tell of a thumbnail that is there now, or is no more.
func (b *book) made(name string, size image.Point) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done.made++
	delete(b.buried, name)
	b.stepLocked("%s: a thumbnail of %d by %d pixels\n", shown(name), size.X, size.Y)
}

func (b *book) removed(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done.removed++
	b.stepLocked("%s: gone, and so is its thumbnail\n", shown(name))
}

// count returns what has been done so far.
func (b *book) count() tally {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.done
	n.givenUp = len(b.buried)
	n.unread = len(b.gaps.unread())
	return n
}

// say prints something that everybody wants to know, trouble what is wrong.
func (b *book) say(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.out.Printf(format, args...)
}

func (b *book) trouble(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.troubleLocked(format, args...)
}

func (b *book) troubleLocked(format string, args ...any) {
	b.err2.Printf("thumbnails: "+format+"\n", args...)
}

func (b *book) stepLocked(format string, args ...any) {
	if b.cfg.verbose {
		b.out.Printf(format, args...)
	}
}

// err returns the first error of printing to stdout.
func (b *book) err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.Err()
}

// reason returns err without the name of the package, which is no news here.
func reason(err error) string {
	if errors.Is(err, jobqueue.ErrDuplicate) {
		return "it is already"
	}
	return err.Error()
}

// shown returns the name of a file as it is told: quoted if it holds what would do
// something to a terminal, or look like another line.
func shown(name string) string {
	if quoted := strconv.Quote(name); strings.Trim(quoted, `"`) != name {
		return quoted
	}
	return name
}

func plural(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
