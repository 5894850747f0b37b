package timeline

import (
	"time"

	"github.com/ambit-go/ambit/async/picture"
)

// This file makes tasks of a recording. Its types have the fields of those of package record, which imports this one.

// A Task is what is drawn as a row.
type Task struct {
	ID, Owner   picture.ID
	Name, Place string
	Queued      time.Duration // before it began
	Begun       time.Time     // zero: not known, before all else
	Ended       time.Time     // zero: it has not
	Outcome     string        // of one that has ended
	Cause       string        // the type of why it was told to stop; "": it was not
	State       string        // of one that has not ended
	Waits       []Wait        // the first that ended first
	First       bool          // it has a problem: it is shown before others
}

// A Wait is what a task waited for, or waits for if it has not ended.
type Wait struct {
	Begun, Ended time.Time // zero: not known; it has not
	What         string    // with a verb: "awaits #4.1 charge"
}

// An Event is a task that has ended: record.Event.
type Event struct {
	ID, Owner   picture.ID
	Task, Place string
	Queued      time.Duration
	Ended       time.Time
	Took        time.Duration
	Outcome     string
	Cause       string
}

// An OverWait is a wait that is over: record.Wait.
type OverWait struct {
	ID    picture.ID
	Task  string
	How   picture.Way
	On    picture.ID
	What  string
	Ended time.Time
	Took  time.Duration
}

// A Live is a task that has not ended: record.Live.
type Live struct {
	ID, Owner   picture.ID
	Task, Place string
	State       picture.State
	Begun       time.Time
	Told        string
	How         picture.Way
	On          picture.ID
	What        string
}

// Tasks returns what is drawn of a recording.
func Tasks(events []Event, waits []OverWait, live []Live) []Task {
	all := make([]Task, 0, len(events)+len(live))
	by := make(map[picture.ID][]Wait)
	for i := range waits {
		w := &waits[i]
		by[w.ID] = append(by[w.ID], Wait{Begun: w.Ended.Add(-w.Took), Ended: w.Ended, What: WaitText(w.How, w.On, w.What)})
	}
	for i := range events {
		e := &events[i]
		t := Task{
			ID: e.ID, Owner: e.Owner, Name: e.Task, Place: e.Place, Queued: e.Queued, Begun: e.Ended.Add(-e.Took), Ended: e.Ended,
			Outcome: e.Outcome, Cause: e.Cause,
		}
		if t.Outcome == "skipped" { // it never ran: its end is the end of its wait in the queue
			t.Begun = t.Ended
		}
		for _, w := range by[t.ID] {
			if !w.Begun.Before(t.Begun) && !w.Ended.After(t.Ended) { // else it is one of another run, or item
				t.Waits = append(t.Waits, w)
			}
		}
		all = append(all, t)
	}
	for i := range live {
		l := &live[i]
		t := Task{ID: l.ID, Owner: l.Owner, Name: l.Task, Place: l.Place, Begun: l.Begun, Cause: l.Told, State: string(l.State)}
		for _, w := range by[t.ID] {
			if !w.Begun.Before(t.Begun) {
				t.Waits = append(t.Waits, w)
			}
		}
		if l.How != "" && l.How != picture.WayJoin {
			t.Waits = append(t.Waits, Wait{What: WaitText(l.How, l.On, l.What)})
		}
		all = append(all, t)
	}
	return all
}

// WaitText says what a wait is for, with a verb.
func WaitText(how picture.Way, on picture.ID, what string) string {
	switch {
	case how == picture.WayAwait && !on.IsZero():
		return "awaits #" + on.String() + " " + what
	case how == picture.WayAwait:
		return "awaits " + what
	case how == picture.WaySleep:
		return "sleeps"
	case how == picture.WayLimit:
		return "waits for a slot"
	case what == "":
		return "waits for " + string(how)
	default:
		return "waits for " + what
	}
}
