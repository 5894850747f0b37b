// Package sums keeps figures of the runs of each type, for charts: sums of minutes for six hours, of
// ten minutes for two days, and of hours for thirty days, and sums since the type is known.
//
// They are notes of a store. A note of a span of time takes the place of the one that is as old as its
// row of notes is long, so there is nothing to be deleted: a queue has at most (MaxTypes + 1) * 1,369 notes
// of about seventy bytes.
package sums

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// Notes is what a store keeps sums in; see taskqueue.NoteStore.
type Notes interface {
	Notes(ctx context.Context, queue string, names []string) (map[string][]byte, error)
	ChangeNotes(ctx context.Context, queue string, names []string, f func(notes map[string][]byte)) error
}

// MaxTypes is how many types of a queue have sums of their own. The others have one together, as type Other.
const (
	MaxTypes = 100
	Other    = ""
)

// A Step is how long the spans of a chart are, and how many are kept.
type Step struct {
	Name string
	Span time.Duration
	Kept int
}

// The steps, the shortest first.
var (
	Minutes    = Step{"m", time.Minute, 360}
	TenMinutes = Step{"d", 10 * time.Minute, 288}
	Hours      = Step{"h", time.Hour, 720}
	Steps      = []Step{Minutes, TenMinutes, Hours}
)

// at is the number of the span that a time is in.
func (s Step) at(t time.Time) int64 { return t.UnixMicro() / s.Span.Microseconds() }

func (s Step) note(at int64, kind string) string {
	return s.Name + strconv.FormatInt(at%int64(s.Kept), 10) + "/" + kind
}

const (
	typesNote = "types" // when each type was noted last, in hours, as JSON
	allNote   = "all/"  // and a type: its sums since it is known
)

// Sums are figures of runs.
type Sums struct {
	At           time.Time // when the span begins
	Done, Failed int64
	Late, Took   Spread
}

// Add adds the figures of others.
func (s *Sums) Add(o *Sums) {
	s.Done += o.Done
	s.Failed += o.Failed
	s.Late.add(&o.Late)
	s.Took.add(&o.Took)
}

// fields are the numbers of s, as they are written down.
func (s *Sums) fields() (all []*int64) {
	all = append(all, &s.Done, &s.Failed)
	for _, spread := range []*Spread{&s.Late, &s.Took} {
		all = append(all, (*int64)(&spread.Sum))
		for i := range spread.By {
			all = append(all, &spread.By[i])
		}
	}
	return all
}

// pack writes the number of the span and all figures.
func (s *Sums) pack(at int64) []byte {
	b := binary.AppendUvarint(nil, uint64(at))
	for _, n := range s.fields() {
		b = binary.AppendUvarint(b, uint64(*n))
	}
	return b
}

// unpack returns the sums that are noted of a span: none if the note is of another.
func unpack(b []byte, at int64) *Sums {
	s := new(Sums)
	noted, n := binary.Uvarint(b)
	if n <= 0 || int64(noted) != at {
		return s
	}
	for _, field := range s.fields() {
		b = b[n:]
		var v uint64
		if v, n = binary.Uvarint(b); n <= 0 {
			return new(Sums)
		}
		*field = int64(v)
	}
	return s
}

// Add adds the sums of some types, which are those of a time.
func Add(ctx context.Context, n Notes, queue string, now time.Time, all map[string]*Sums) error {
	names := append(notesOf(Other, now), typesNote)
	for kind := range all {
		names = append(names, notesOf(kind, now)...)
	}
	return n.ChangeNotes(ctx, queue, names, func(notes map[string][]byte) {
		known := types(notes[typesNote])
		for kind, s := range all {
			kind = admit(known, kind, now, notes)
			for _, step := range Steps {
				add(notes, step.note(step.at(now), kind), step.at(now), s)
			}
			add(notes, allNote+kind, 0, s)
		}
		b, err := json.Marshal(known)
		if err != nil {
			panic(err) // texts and numbers
		}
		notes[typesNote] = b
	})
}

func notesOf(kind string, now time.Time) []string {
	names := []string{allNote + kind}
	for _, step := range Steps {
		names = append(names, step.note(step.at(now), kind))
	}
	return names
}

func add(notes map[string][]byte, name string, at int64, s *Sums) {
	sum := unpack(notes[name], at)
	sum.Add(s)
	notes[name] = sum.pack(at)
}

func types(note []byte) map[string]int64 {
	known := map[string]int64{}
	_ = json.Unmarshal(note, &known) // what cannot be read is begun anew
	return known
}

// admit returns the type that sums of kind are noted for. If there are too many, one that has not run for as
// long as hours are kept is forgotten.
func admit(known map[string]int64, kind string, now time.Time, notes map[string][]byte) string {
	hour := Hours.at(now)
	if _, is := known[kind]; !is && len(known) >= MaxTypes {
		for old, last := range known {
			if hour-last > int64(Hours.Kept) && len(known) >= MaxTypes {
				delete(known, old)
				forget(notes, old)
			}
		}
		if len(known) >= MaxTypes {
			return Other
		}
	}
	if kind != Other {
		known[kind] = hour
	}
	return kind
}

func forget(notes map[string][]byte, kind string) {
	notes[allNote+kind] = nil
	for _, step := range Steps {
		for at := range int64(step.Kept) {
			notes[step.note(at, kind)] = nil
		}
	}
}

// Types returns the types that have sums, with those since each is known.
func Types(ctx context.Context, n Notes, queue string) (map[string]*Sums, error) {
	notes, err := n.Notes(ctx, queue, []string{typesNote})
	if err != nil {
		return nil, err
	}
	names := []string{allNote + Other}
	for kind := range types(notes[typesNote]) {
		names = append(names, allNote+kind)
	}
	if notes, err = n.Notes(ctx, queue, names); err != nil {
		return nil, err
	}
	all := map[string]*Sums{}
	for name, note := range notes {
		all[strings.TrimPrefix(name, allNote)] = unpack(note, 0)
	}
	return all, nil
}

// Last returns the sums of types in the last spans of a step until now, the oldest first. All figures of a span without
// runs are 0.
func Last(
	ctx context.Context, n Notes, queue string, kinds []string, step Step, spans int, now time.Time,
) (map[string][]Sums, error) {
	first := step.at(now) - int64(spans) + 1
	var names []string
	for _, kind := range kinds {
		for i := range int64(spans) {
			names = append(names, step.note(first+i, kind))
		}
	}
	notes, err := n.Notes(ctx, queue, names)
	if err != nil {
		return nil, err
	}
	all := map[string][]Sums{}
	for _, kind := range kinds {
		for i := range int64(spans) {
			s := unpack(notes[step.note(first+i, kind)], first+i)
			s.At = time.UnixMicro((first + i) * step.Span.Microseconds())
			all[kind] = append(all[kind], *s)
		}
	}
	return all, nil
}
