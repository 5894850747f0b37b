package lockstest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// An Event is something that a process of a history has seen. All processes write the
// events into one file, with a clock that they share and that nobody sets.
type Event struct {
	At     time.Duration `json:"at"`
	Client string        `json:"client"`
	Kind   string        `json:"kind"`
	Key    string        `json:"key,omitempty"`
	Token  int64         `json:"token,omitempty"`
	Slot   int           `json:"slot,omitempty"`
	Text   string        `json:"text,omitempty"`
}

// The kinds of events.
const (
	Ready   = "ready"   // the process has opened the store
	Granted = "granted" // the body has begun, under that token
	// Acts: at that time, and then the lease's Err was nil: the process believed that it
	// had the lock. The time is taken before the look, so however long the process stands
	// still in between, the belief is not of later than that.
	Acts = "acts"
	// Lives: the same for the ctx of the body, in a process that had not stood still. Who writes this writes no Acts
	// of the same time: either is a belief.
	Lives    = "lives"
	Left     = "left"     // the body has ended
	Returned = "returned" // With has returned: Text is the error
)

// A Journal is the file of a history.
type Journal struct {
	client string
	file   *os.File
}

// OpenJournal opens the file of a history for one process.
func OpenJournal(path, client string) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return &Journal{client, f}, err
}

// Write adds an event. A line is written at once, so lines of processes do not mix.
func (j *Journal) Write(e Event) {
	e.Client = j.client
	if e.At == 0 {
		e.At = Now()
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = j.file.Write(append(line, '\n'))
	}
	if err != nil {
		panic(err) // a history with holes proves nothing
	}
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }

// ReadHistory reads all events so far, in the order of their times. A line that is being
// written is left out.
func ReadHistory(path string) ([]Event, error) {
	h := history{path: path}
	return h.read()
}

// A history is a journal that is read while others write it: each look reads only the lines
// that are new.
type history struct {
	path   string
	offset int64 // where the first line begins that has not been read
	events []Event
}

// read returns all events so far, in the order of their times, until it is called again.
func (h *history) read() ([]Event, error) {
	f, err := os.Open(h.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(h.offset, io.SeekStart); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1] // the rest is being written
	h.offset += int64(len(text))
	known := len(h.events)
	for line := range bytes.Lines(text) {
		var e Event
		if json.Unmarshal(line, &e) == nil {
			h.events = append(h.events, e)
		}
	}
	if fresh := h.events[known:]; len(fresh) > 0 { // what is of before the first of these is in order
		i := firstSince(slices.MinFunc(fresh, earlier).At, h.events[:known])
		slices.SortStableFunc(h.events[i:], earlier)
	}
	return h.events, nil
}

func earlier(a, b Event) int { return cmp.Compare(a.At, b.At) }

// firstSince returns where the events begin that are not of before a time.
func firstSince(at time.Duration, events []Event) int {
	i, _ := slices.BinarySearchFunc(events, at, func(e Event, at time.Duration) int { return cmp.Compare(e.At, at) })
	return i
}

// Check returns what is wrong with a history, a sentence each: two believe at the same
// time that they have the same slot of a lock, a token was given twice, or With said that
// all was well when it was not.
func Check(events []Event) []string {
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	type slot struct {
		key  string
		slot int
	}
	last := map[slot]Event{} // the grant with the greatest token so far
	seen := map[string]Event{}
	for _, e := range events {
		at := slot{e.Key, e.Slot}
		newest := last[at]
		switch e.Kind {
		case Granted:
			token := fmt.Sprint(e.Key, " ", e.Token)
			if other, twice := seen[token]; twice {
				fault("token %d of %q was granted to %s and to %s", e.Token, e.Key, other.Client, e.Client)
			}
			seen[token] = e
			if e.Token > newest.Token {
				last[at] = e
			}
		case Acts, Lives:
			if newest.Token > e.Token {
				fault("%s believed (%s) that it had %q with token %d, %v after token %d was granted to %s",
					e.Client, e.Kind, e.Key, e.Token, e.At-newest.At, newest.Token, newest.Client)
			}
		case Returned:
			if e.Text == "" && newest.Token > e.Token {
				if left := find(events, e.Client, Left, e.Token); left.At > newest.At {
					fault("With of %s returned nil for %q with token %d, and its body ended %v after token %d was granted",
						e.Client, e.Key, e.Token, left.At-newest.At, newest.Token)
				}
			}
		}
	}
	return faults
}

func find(events []Event, client, kind string, token int64) Event {
	for _, e := range events {
		if e.Client == client && e.Kind == kind && e.Token == token {
			return e
		}
	}
	return Event{}
}

// Count returns how many events there are of a kind since a time, by the process. The events are in order.
func Count(events []Event, kind string, since time.Duration) map[string]int {
	counts := map[string]int{}
	later := events[firstSince(since, events):]
	for i := range later {
		if later[i].Kind == kind {
			counts[later[i].Client]++
		}
	}
	return counts
}

// Lost returns how many calls of With have said that the lock was lost.
func Lost(events []Event) (n int) {
	for _, e := range events {
		if e.Kind == Returned && strings.Contains(e.Text, "was lost") {
			n++
		}
	}
	return n
}
