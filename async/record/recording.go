package record

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ambit-go/ambit/async/picture"
)

// This file is what was recorded, as data, and as a file: gzip, and in it a line of JSON for the head and one for each event.

// Schema says what a file of a [Recording] means: a meaning that changes gets another number, new fields do not.
const Schema = "ambit-recording/1"

// A Recording is what a [Recorder] had at one moment.
type Recording struct {
	At       time.Time
	Lost     int64     // how many events were overwritten before
	Events   []Event   // the first that ended first
	Failures []Failure // the oldest first
}

// An Event is a task that has ended.
type Event struct {
	ID      picture.ID    `json:"id"`
	Owner   picture.ID    `json:"owner,omitzero"`
	Task    string        `json:"task"`
	Ended   time.Time     `json:"ended"`
	Took    time.Duration `json:"took_ns"`
	Outcome string        `json:"outcome"`         // ok, cancelled, error, timeout, watchdog, panic, goexit
	Cause   string        `json:"cause,omitempty"` // the type of why it was told to stop
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

// Recording returns what r has. Tasks that end meanwhile are in it or not.
func (r *Recorder) Recording() *Recording {
	out := &Recording{At: time.Now()}
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		out.Lost += s.seen - int64(len(s.ring))
		for _, e := range s.ring {
			one := Event{
				ID: e.id, Owner: e.owner, Task: s.called[e.name], Ended: time.Unix(0, e.ended), Took: time.Duration(e.took),
				Outcome: outcomes[e.outcome],
			}
			if e.cause != 0 {
				one.Cause = s.called[e.cause]
			}
			out.Events = append(out.Events, one)
		}
		s.mu.Unlock()
	}
	slices.SortStableFunc(out.Events, func(a, b Event) int { return a.Ended.Compare(b.Ended) })
	r.failures.mu.Lock()
	defer r.failures.mu.Unlock()
	out.Failures = slices.Clone(r.failures.ring)
	slices.SortStableFunc(out.Failures, func(a, b Failure) int { return a.At.Compare(b.At) })
	return out
}

// A line is one line of a file: a head, an event or a failure.
type line struct {
	Schema  string    `json:"schema,omitempty"`
	At      time.Time `json:"at,omitzero"`
	Lost    int64     `json:"lost,omitempty"`
	Event   *Event    `json:"event,omitempty"`
	Failure *Failure  `json:"failure,omitempty"`
}

// Save writes what r has to w, in the form of [Schema], which [Open] reads.
func (r *Recorder) Save(w io.Writer) error { return r.Recording().Save(w) }

// Save writes it to w, in the form of [Schema], which [Open] reads.
func (r *Recording) Save(w io.Writer) error {
	zip := gzip.NewWriter(w)
	to := json.NewEncoder(zip) // what w says is said by Close, too
	_ = to.Encode(line{Schema: Schema, At: r.At, Lost: r.Lost})
	for i := range r.Events {
		_ = to.Encode(line{Event: &r.Events[i]})
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
// A file that was cut off, is of another schema, or is none, is an error. At most 16 million events are read.
func Open(r io.Reader) (*Recording, error) {
	zip, err := gzip.NewReader(bufio.NewReader(r))
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
	out := &Recording{At: head.At, Lost: head.Lost}
	for range mostRead {
		var l line
		switch err := from.Decode(&l); {
		case err == io.EOF:
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("record: after %d events: %w", len(out.Events), err)
		case l.Event != nil:
			out.Events = append(out.Events, *l.Event)
		case l.Failure != nil:
			out.Failures = append(out.Failures, *l.Failure)
		}
	}
	return nil, fmt.Errorf("record: more than %d lines", mostRead)
}

const mostRead = 16 << 20

// byStart returns the events with the one first that began first; of those that began together the longest, and of equal ones that
// which ended last: an owner ends after what is in it.
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
