package look

import (
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/plain"
)

// How much of what a task brings along is in a picture, in bytes.
const (
	maxText  = 200 // payload and progress
	maxError = 2000
)

// A Snapshot is a picture of a store. As JSON it is what the page answers at /api.
type Snapshot struct {
	At          time.Time `json:"at"`
	TookSeconds float64   `json:"took_seconds"`
	Queues      []Queue   `json:"queues"`
	// MoreQueues is how many queues there are beside those that were looked at.
	MoreQueues int `json:"more_queues"`

	Running  []Task     `json:"running"`  // those that run longest, up to MaxTasks a queue
	Retrying []Task     `json:"retrying"` // failed, and due next
	Dead     []Task     `json:"dead"`     // that died last
	Periodic []Periodic `json:"periodic"`
}

// Of returns what s has of one queue.
func (s *Snapshot) Of(name string) *Snapshot {
	one := &Snapshot{At: s.At, TookSeconds: s.TookSeconds}
	one.Queues = only(s.Queues, func(q Queue) bool { return q.Name == name })
	of := func(t Task) bool { return t.Queue == name }
	one.Running, one.Retrying, one.Dead = only(s.Running, of), only(s.Retrying, of), only(s.Dead, of)
	one.Periodic = only(s.Periodic, func(p Periodic) bool { return p.Queue == name })
	return one
}

func only[T any](all []T, f func(T) bool) []T {
	some := []T{}
	for _, v := range all {
		if f(v) {
			some = append(some, v)
		}
	}
	return some
}

// A Queue is what is known of a queue.
type Queue struct {
	Name        string                      `json:"queue"`
	Error       string                      `json:"error,omitempty"` // it could not be read
	Settings    taskqueue.Settings          `json:"settings"`
	States      map[taskqueue.State]int64   `json:"states"`
	Counts      map[taskqueue.Counter]int64 `json:"counts"`
	LateSeconds float64                     `json:"late_seconds"`
	Limited     int64                       `json:"limited,omitempty"` // of those that are ready, by limits of keys and types
	Limits      []taskqueue.Limit           `json:"limits,omitempty"`
	// Rates are how often a second, over the last RateSeconds. Not there until there
	// are two pictures to compare.
	Rates       map[taskqueue.Counter]float64 `json:"rates,omitempty"`
	RateSeconds float64                       `json:"rate_seconds,omitempty"`
	// History is how many tasks a second ended well, and how many runs failed.
	History []Point `json:"history,omitempty"`
}

// A Point is a part of a history: it ends at At.
type Point struct {
	At     time.Time `json:"at"`
	Done   float64   `json:"done"`
	Failed float64   `json:"failed"`
}

func (q *Queue) fill(st taskqueue.Stats) {
	q.Settings, q.LateSeconds = st.Settings, st.Latest.Seconds()
	q.Limited, q.Limits = st.Limited, st.Limits
	if st.States != nil {
		q.States = st.States
	}
	if st.Counts != nil {
		q.Counts = st.Counts
	}
}

// A Task is what a picture has of a task. Its texts are cut, and fit to be shown.
type Task struct {
	Queue           string          `json:"queue"`
	ID              string          `json:"id"`
	Type            string          `json:"type"`
	State           taskqueue.State `json:"state"`
	Priority        uint8           `json:"priority,omitempty"`
	Attempt         int             `json:"attempt"`
	Failures        int             `json:"failures"`
	MaxFailures     int             `json:"max_failures"`
	Crashes         int             `json:"crashes"`
	MaxCrashes      int             `json:"max_crashes"`
	Worker          string          `json:"worker,omitempty"`
	DueAt           time.Time       `json:"due_at"`
	StartedAt       time.Time       `json:"started_at,omitzero"`
	EndedAt         time.Time       `json:"ended_at,omitzero"`
	LeaseEnd        time.Time       `json:"lease_end,omitzero"`
	CancelRequested bool            `json:"cancel_requested,omitempty"`
	Error           string          `json:"error,omitempty"`
	Payload         string          `json:"payload,omitempty"`
	PayloadBytes    int             `json:"payload_bytes"`
	Progress        string          `json:"progress,omitempty"`
}

func newTask(i taskqueue.Info) Task {
	return Task{
		Queue: i.Queue, ID: i.ID, Type: i.Type, State: i.State, Priority: i.Priority,
		Attempt: i.Attempt, Failures: i.Failures, MaxFailures: i.MaxFailures, Crashes: i.Crashes, MaxCrashes: i.MaxCrashes,
		Worker: i.Worker, DueAt: i.DueAt, StartedAt: i.StartedAt, EndedAt: i.EndedAt, LeaseEnd: i.LeaseEnd,
		CancelRequested: i.CancelRequested,
		Error:           plain.Text(plain.Head(i.LastError, maxError)),
		Payload:         head(i.Payload), PayloadBytes: len(i.Payload), Progress: head(i.Progress),
	}
}

// head is the beginning of b, without a copy of the rest.
func head(b []byte) string {
	return plain.Text(plain.Head(string(b[:min(len(b), maxText+1)]), maxText))
}

// A Periodic is a periodic job of a queue.
type Periodic struct {
	Queue    string    `json:"queue"`
	Name     string    `json:"name"`
	Schedule string    `json:"schedule"`
	Defined  time.Time `json:"defined,omitzero"`
	Last     time.Time `json:"last,omitzero"`
}
