package record

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/internal/crash"
	"github.com/ambit-go/ambit/async/internal/tree"
	"github.com/ambit-go/ambit/async/picture"
)

// This file keeps the last ends of tasks, and of waits, in memory whose size is fixed.

// A Recorder keeps the last tasks and waits that have ended, and the last failures. It may observe any number of
// scopes.
type Recorder struct {
	settings
	shards   [shards]shard
	failures failures
}

// Bounds of a recorder.
const (
	shards       = 16 // so that tasks which end at once seldom wait for each other
	defaultBytes = 4 << 20
	eventBytes   = 80 // of an event in memory, at most
	mostFailures = 256
	mostText     = 200
)

// A shard is a part of the events, with a lock of its own.
type shard struct {
	mu     sync.Mutex
	ring   []event
	most   int   // events
	seen   int64 // how many events there ever were; of a full ring the next one overwrites that at seen % most
	spared int64 // how many tasks were left out, because of Sample
	leaves int64 // how many unnamed leaves there ever were
	names  map[string]uint16
	called []string // names by their number; 0: of those that found no place
}

// An event is the end of a task, or of a wait, as it is kept. It has no pointer: a task, its future and its ctx are
// kept by nobody here.
type event struct {
	id      picture.ID
	owner   picture.ID // of a wait: what was waited for
	ended   int64      // nanoseconds of Unix time
	took    int64
	queued  int64   // before that
	pc      uintptr // where it was started
	name    uint16
	cause   uint16 // the type of the cause, in called; of a wait: the name of what was waited for
	outcome uint8  // in outcomes; of a wait: how, in ways
	isWait  bool
}

// failures are the last tasks that have not ended well. Those that have cannot evict them.
type failures struct {
	mu   sync.Mutex
	ring []Failure
	seen int64
}

// New returns a Recorder, which is an observer of scopes.
//
//	rec := record.New()
//	err := async.Scope(ctx, serve, async.Observe(rec))
//
// # Details
//
// It keeps the last tasks that have ended in the scopes that it observes: each with its name, its owner, how long
// it queued, when and for how long it ran, and how it ended; and the last waits, of a millisecond or more, that are
// over. A full recorder overwrites the oldest. The last 256 failures are kept beside them, with the first line of
// their text, so a million tasks that end well do not evict one. It keeps 80 bytes a task, and nothing of what the
// task has captured.
//
// [Recorder.Save] writes it all down, [Recording.WriteHTML] draws it as a page that plays it, [Recorder.WriteTrace]
// makes a time line for ui.perfetto.dev.
func New(opts ...RecorderOption) *Recorder {
	set := settings{bytes: defaultBytes, over: time.Millisecond, one: 1}
	for _, opt := range opts {
		if opt == nil {
			panic("record: New with a nil option: leave it out")
		}
		opt.apply(&set)
	}
	r := &Recorder{settings: set}
	for i := range r.shards {
		s := &r.shards[i]
		s.most = set.bytes / eventBytes / shards
		s.names, s.called = make(map[string]uint16), []string{"other"}
	}
	return r
}

// Kinds are those that r is to be told of: see [async.Observer].
func (r *Recorder) Kinds() []async.EventKind {
	kinds := []async.EventKind{async.EventEnd, async.EventSkipped, async.EventWaited}
	if r.callers {
		kinds = append(kinds, async.EventQueued) // so that ends have a PC
	}
	return kinds
}

// Observe notes what e tells. It blocks for no longer than another Observe takes.
func (r *Recorder) Observe(e async.Event) {
	now := time.Now()
	s := &r.shards[uint64(e.ID.Scope+e.ID.Ordinal)%shards]
	switch e.Kind {
	case async.EventWaited:
		if e.Duration >= r.over {
			s.addWait(&e, now)
		}
		return
	case async.EventEnd, async.EventSkipped:
	default:
		return
	}
	_, outcome := judge(&e)
	s.add(&e, outcome, now, r.one)
	if !goodEnds[outcome] {
		r.failures.add(&e, outcome, now)
	}
}

// goodEnds are no failures.
var goodEnds = map[string]bool{"ok": true, "cancelled": true, "skipped": true}

// add keeps the end of a task, but of unnamed leaves that are no failures only one of so many.
func (s *shard) add(e *async.Event, outcome string, now time.Time, oneOf int64) {
	spare := oneOf > 1 && goodEnds[outcome] && tree.IsUnnamedLeaf(e.Ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if spare {
		if s.leaves++; s.leaves%oneOf != 1 {
			s.spared++
			return
		}
	}
	one := event{
		id: e.ID, owner: e.Owner, name: s.numberLocked(e.Task), pc: e.PC,
		ended: now.UnixNano(), took: int64(e.Duration), queued: int64(e.Queued),
		outcome: uint8(slices.Index(outcomes[:], outcome)),
	}
	if e.Cause != nil {
		one.cause = s.numberLocked(fmt.Sprintf("%T", e.Cause))
	}
	s.putLocked(one)
}

// addWait keeps the end of a wait.
func (s *shard) addWait(e *async.Event, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := event{
		id: e.ID, owner: e.Wait.On, ended: now.UnixNano(), took: int64(e.Duration), name: s.numberLocked(e.Task),
		outcome: uint8(slices.Index(ways[:], e.Wait.How)), isWait: true,
	}
	if what := strings.TrimPrefix(e.Wait.Name+": "+e.Wait.Text, ": "); what != "" {
		one.cause = s.numberLocked(strings.TrimSuffix(what, ": "))
	}
	s.putLocked(one)
}

func (s *shard) putLocked(one event) {
	if len(s.ring) < s.most {
		s.growLocked()
		s.ring = append(s.ring, one)
	} else {
		s.ring[s.seen%int64(s.most)] = one
	}
	s.seen++
}

// growLocked sees to it that there is room for one event more, and never for more than there may be.
func (s *shard) growLocked() {
	if len(s.ring) == cap(s.ring) {
		grown := make([]event, len(s.ring), min(max(64, 2*len(s.ring)), s.most))
		copy(grown, s.ring)
		s.ring = grown
	}
}

// numberLocked returns the number of a name, 0 if there are too many.
func (s *shard) numberLocked(name string) uint16 {
	if len(name) > mostText || !utf8.ValidString(name) {
		name = cut(name)
	}
	if n, known := s.names[name]; known {
		return n
	}
	if len(s.called) > mostNames {
		return 0
	}
	n := uint16(len(s.called))
	name = strings.Clone(name)
	s.names[name], s.called = n, append(s.called, name)
	return n
}

// outcomes are how a task may have ended, as judge says.
var outcomes = [...]string{"ok", "cancelled", "error", "timeout", "watchdog", "panic", "goexit", "skipped"}

// ways are how a task may have waited.
var ways = [...]picture.Way{picture.WayAwait, picture.WaySleep, picture.WayPart}

func (f *failures) add(e *async.Event, outcome string, now time.Time) {
	one := Failure{ID: e.ID, Task: cut(e.Task), At: now, Outcome: outcome, Type: fmt.Sprintf("%T", e.Err)}
	if e.Err != nil {
		text, _, _ := strings.Cut(crash.Text(e.Err), "\n") // it calls a user's method: no lock is held
		one.Text = cut(text)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.ring) < mostFailures {
		f.ring = append(f.ring, one)
	} else {
		f.ring[f.seen%mostFailures] = one
	}
	f.seen++
}

// cut returns the first characters of a text, and a copy: what it was cut from is not kept.
func cut(text string) string {
	if len(text) > mostText {
		text = strings.ToValidUTF8(text[:mostText], "") + "…"
	}
	return strings.Clone(strings.ToValidUTF8(text, "\uFFFD"))
}
