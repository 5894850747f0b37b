package record

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/internal/timeline"
	"github.com/ambit-go/ambit/async/picture"
)

// This file is what was recorded, as data, and as a file: gzip, and in it a line of JSON for the head and one for
// each event.

// Schema says what a file of a [Recording] means: a meaning that changes gets another number, new fields do not.
const Schema = "ambit-recording/1"

// A Recording is what a [Recorder] had at one moment.
type Recording struct {
	At       time.Time
	Process  string // the name of the program
	PID      int
	Lost     int64     // how many events and waits were overwritten before
	Spared   int64     // how many tasks were left out, because of [Sample]
	Events   []Event   // the first that ended first
	Waits    []Wait    // that are over, the first that ended first
	Live     []Live    // what had not ended, an owner before what it owns
	Failures []Failure // the oldest first
}

// An Event is a task that has ended.
type Event struct {
	ID      picture.ID    `json:"id"`
	Owner   picture.ID    `json:"owner,omitzero"`
	Task    string        `json:"task"`
	Place   string        `json:"place,omitempty"` // where it was started, as folder/file.go:12; only with [Callers]
	Queued  time.Duration `json:"queued_ns,omitempty"`
	Ended   time.Time     `json:"ended"`
	Took    time.Duration `json:"took_ns"`
	Outcome string        `json:"outcome"`         // ok, cancelled, error, timeout, watchdog, panic, goexit, skipped
	Cause   string        `json:"cause,omitempty"` // the type of why it was told to stop
}

// A Wait is a wait of a task that is over.
type Wait struct {
	ID    picture.ID    `json:"id"`
	Task  string        `json:"task"`
	How   picture.Way   `json:"how"`
	On    picture.ID    `json:"on,omitzero"`    // the task that was waited for
	What  string        `json:"what,omitempty"` // its name, or what another package says
	Ended time.Time     `json:"ended"`
	Took  time.Duration `json:"took_ns"`
}

// A Live is a task that had not ended.
type Live struct {
	ID    picture.ID    `json:"id"`
	Owner picture.ID    `json:"owner,omitzero"`
	Task  string        `json:"task"`
	Place string        `json:"place,omitempty"` // where its function stands
	State picture.State `json:"state"`
	Begun time.Time     `json:"begun,omitzero"` // zero: nobody observes it
	Told  string        `json:"told,omitempty"` // the type of why it was told to stop
	How   picture.Way   `json:"how,omitempty"`  // it waits
	On    picture.ID    `json:"on,omitzero"`
	What  string        `json:"what,omitempty"`
}

// A Failure is a task that has not ended well.
type Failure struct {
	ID      picture.ID `json:"id"`
	Task    string     `json:"task"`
	At      time.Time  `json:"at"`
	Outcome string     `json:"outcome"`
	Type    string     `json:"type"`
	Text    string     `json:"text,omitempty"` // its first line
}

// Recording returns what r has.
//
//	recording := rec.Recording(async.Snapshot())
//
// # Details
//
// Tasks that have not ended are taken from a picture, which is made just before; nil is none. One that ends
// meanwhile is in the recording or not.
func (r *Recorder) Recording(live *picture.Tree) *Recording {
	out := &Recording{At: time.Now(), Process: filepath.Base(os.Args[0]), PID: os.Getpid()}
	places := make(map[uintptr]string)
	for i := range r.shards {
		r.shards[i].copyTo(out, places)
	}
	slices.SortStableFunc(out.Events, func(a, b Event) int { return a.Ended.Compare(b.Ended) })
	slices.SortStableFunc(out.Waits, func(a, b Wait) int { return a.Ended.Compare(b.Ended) })
	if live != nil {
		out.Live = out.liveIn(live)
	}
	r.failures.mu.Lock()
	defer r.failures.mu.Unlock()
	out.Failures = slices.Clone(r.failures.ring)
	slices.SortStableFunc(out.Failures, func(a, b Failure) int { return a.At.Compare(b.At) })
	return out
}

func (s *shard) copyTo(out *Recording, places map[uintptr]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out.Lost += s.seen - int64(len(s.ring))
	out.Spared += s.spared
	for i := range s.ring {
		e := &s.ring[i]
		ended, what := time.Unix(0, e.ended), ""
		if e.cause != 0 {
			what = s.called[e.cause]
		}
		if e.isWait {
			out.Waits = append(out.Waits, Wait{
				ID: e.id, Task: s.called[e.name], How: ways[e.outcome], On: e.owner, What: what,
				Ended: ended, Took: time.Duration(e.took),
			})
			continue
		}
		out.Events = append(out.Events, Event{
			ID: e.id, Owner: e.owner, Task: s.called[e.name], Place: placeOf(e.pc, places),
			Queued: time.Duration(e.queued), Ended: ended,
			Took: time.Duration(e.took), Outcome: outcomes[e.outcome], Cause: what,
		})
	}
}

// placeOf returns the line of a call, with one folder, which tells nothing of the machine it was compiled on.
func placeOf(pc uintptr, known map[uintptr]string) string {
	if pc == 0 {
		return ""
	}
	place, ok := known[pc]
	if !ok {
		f, _ := runtime.CallersFrames([]uintptr{pc}).Next()
		dir, base := path.Split(f.File)
		place = path.Join(path.Base(dir), base) + ":" + strconv.Itoa(f.Line)
		known[pc] = place
	}
	return place
}

// liveIn returns what stands in a picture and is not recorded as ended since.
func (r *Recording) liveIn(pic *picture.Tree) (all []Live) {
	ended, owners := make(map[picture.ID]bool), make(map[int64]picture.ID)
	for i := range slices.Backward(r.Events) {
		if r.Events[i].Ended.Before(pic.At.Add(-pic.Took)) {
			break
		}
		ended[r.Events[i].ID] = true
	}
	for i := range pic.Nodes {
		n := &pic.Nodes[i]
		if n.Scope != 0 {
			owners[n.Scope] = n.ID
		}
		if ended[n.ID] {
			continue
		}
		one := Live{ID: n.ID, Owner: owners[n.ID.Scope], Task: n.Name, Place: n.Place, State: n.State, Begun: n.Begun}
		if n.Told != nil {
			one.Told = n.Told.Type
		}
		if len(n.Waits) > 0 {
			w := &n.Waits[0]
			one.How, one.On, one.What = w.How, w.On, w.Name+w.Text
		}
		all = append(all, one)
	}
	return all
}

// A line is one line of a file: a head, an event or a failure.
type line struct {
	Schema  string    `json:"schema,omitempty"`
	At      time.Time `json:"at,omitzero"`
	Process string    `json:"process,omitempty"`
	PID     int       `json:"pid,omitempty"`
	Lost    int64     `json:"lost,omitempty"`
	Spared  int64     `json:"spared,omitempty"`
	Event   *Event    `json:"event,omitempty"`
	Wait    *Wait     `json:"wait,omitempty"`
	Live    *Live     `json:"live,omitempty"`
	Failure *Failure  `json:"failure,omitempty"`
}

// Save writes what r has, and what is live at the root of the process, to w, in the form of [Schema], which [Open]
// reads.
func (r *Recorder) Save(w io.Writer) error { return r.Recording(async.Snapshot()).Save(w) }

// Save writes it to w, in the form of [Schema], which [Open] reads.
func (r *Recording) Save(w io.Writer) error {
	zip := gzip.NewWriter(w)
	to := json.NewEncoder(zip) // what w says is said by Close, too
	_ = to.Encode(line{Schema: Schema, At: r.At, Process: r.Process, PID: r.PID, Lost: r.Lost, Spared: r.Spared})
	for i := range r.Events {
		_ = to.Encode(line{Event: &r.Events[i]})
	}
	for i := range r.Waits {
		_ = to.Encode(line{Wait: &r.Waits[i]})
	}
	for i := range r.Live {
		_ = to.Encode(line{Live: &r.Live[i]})
	}
	for i := range r.Failures {
		_ = to.Encode(line{Failure: &r.Failures[i]})
	}
	return zip.Close()
}

// Open reads what Save has written.
//
//	recording, err := record.Open(file)
//
// # Details
//
// It reads a page that [Recording.WriteHTML] has written, too, and one that was saved from package asyncz with a
// recorder. A file that was cut off, is of another schema, or is none, is an error. At most 16 million events are
// read.
func Open(r io.Reader) (*Recording, error) {
	from := bufio.NewReader(r)
	if start, _ := from.Peek(len(timeline.PageBegins)); string(start) == timeline.PageBegins {
		data, err := timeline.DataIn(from)
		if err != nil {
			return nil, fmt.Errorf("record: not a recording: %w", err)
		}
		return read(bytes.NewReader(data))
	}
	return read(from)
}

// read reads what Save has written.
func read(r io.Reader) (*Recording, error) {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("record: not a recording: %w", err)
	}
	from := json.NewDecoder(zip)
	var head line
	if err := from.Decode(&head); err != nil {
		return nil, fmt.Errorf("record: not a recording: %w", err)
	}
	if head.Schema != Schema {
		return nil, fmt.Errorf("record: the schema is %q, not %s", head.Schema, Schema)
	}
	out := &Recording{At: head.At, Process: head.Process, PID: head.PID, Lost: head.Lost, Spared: head.Spared}
	for range mostRead {
		var l line
		switch err := from.Decode(&l); {
		case err == io.EOF:
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("record: after %d events: %w", len(out.Events), err)
		case l.Event != nil:
			out.Events = append(out.Events, *l.Event)
		case l.Wait != nil:
			out.Waits = append(out.Waits, *l.Wait)
		case l.Live != nil:
			out.Live = append(out.Live, *l.Live)
		case l.Failure != nil:
			out.Failures = append(out.Failures, *l.Failure)
		}
	}
	return nil, fmt.Errorf("record: more than %d lines", mostRead)
}

const mostRead = 16 << 20

// byStart returns the events with the one first that began first; of those that began together the longest, and of
// equal ones that which ended last: an owner ends after what is in it.
func (r *Recording) byStart() []*Event {
	all := make([]*Event, len(r.Events))
	for i := range r.Events {
		all[len(all)-1-i] = &r.Events[i]
	}
	slices.SortStableFunc(all, func(a, b *Event) int {
		return cmp.Or(a.Ended.Add(-a.Took).Compare(b.Ended.Add(-b.Took)), cmp.Compare(b.Took, a.Took))
	})
	return all
}
