package look

import (
	"cmp"
	"slices"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/plain"
	"github.com/ambit-go/ambit/taskqueue/internal/sums"
)

// How much of what a task brings along is in a picture, in bytes.
const (
	maxText  = 200 // progress
	maxError = 2000
)

// A Snapshot is a picture of a store. As JSON it is what the page answers at /api.
type Snapshot struct {
	At          time.Time `json:"at"`
	TookSeconds float64   `json:"took_seconds"`
	Queues      []Queue   `json:"queues"`
	// MoreQueues is how many queues there are beside those that were looked at.
	MoreQueues int `json:"more_queues"`

	Failures []Failure  `json:"failures"` // those of most tasks, up to MaxGroups a queue
	Kinds    []Kind     `json:"kinds"`
	Running  []Task     `json:"running"`  // those that run longest, up to MaxSample a queue
	Waiting  []Parent   `json:"waiting"`  // that others wait for
	Kept     []Kept     `json:"limited"`  // groups of tasks that a limit counts together
	Periodic []Periodic `json:"periodic"` // periodic jobs
}

// add adds what a part has.
func (s *Snapshot) add(p *part) {
	s.Queues = append(s.Queues, p.queue)
	s.Failures = append(s.Failures, p.Failures...)
	s.Kinds = append(s.Kinds, p.Kinds...)
	s.Running = append(s.Running, p.Running...)
	s.Waiting = append(s.Waiting, p.Waiting...)
	s.Kept = append(s.Kept, p.Kept...)
	s.Periodic = append(s.Periodic, p.Periodic...)
}

func (s *Snapshot) sort() {
	slices.SortFunc(s.Failures, func(a, b Failure) int {
		return cmp.Or(b.Dead-a.Dead, b.Retrying-a.Retrying, b.Last.Compare(a.Last), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(s.Kinds, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Queue, b.Queue))
	})
	slices.SortStableFunc(s.Running, func(a, b Task) int { return a.StartedAt.Compare(b.StartedAt) })
	slices.SortFunc(s.Periodic, func(a, b Periodic) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Name, b.Name))
	})
}

// Of returns what s has of one queue.
func (s *Snapshot) Of(name string) *Snapshot {
	return &Snapshot{
		At: s.At, TookSeconds: s.TookSeconds,
		Queues:   only(s.Queues, func(q Queue) bool { return q.Name == name }),
		Failures: only(s.Failures, func(f Failure) bool { return f.Queue == name }),
		Kinds:    only(s.Kinds, func(k Kind) bool { return k.Queue == name }),
		Running:  only(s.Running, func(t Task) bool { return t.Queue == name }),
		Waiting:  only(s.Waiting, func(p Parent) bool { return p.Queue == name }),
		Kept:     only(s.Kept, func(k Kept) bool { return k.Queue == name }),
		Periodic: only(s.Periodic, func(p Periodic) bool { return p.Queue == name }),
	}
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
	Limited     int64                       `json:"limited,omitempty"` // of those that are ready
	Limits      []taskqueue.Limit           `json:"limits,omitempty"`
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

// A Failure is tasks of a type that have failed alike: those of the last MaxSample dead letters, and of the first
// MaxSample that are to run again.
type Failure struct {
	Queue        string    `json:"queue"`
	Type         string    `json:"type"`
	Alike        string    `json:"alike"` // what their errors have in common; never empty
	Dead         int       `json:"dead"`
	MoreDead     bool      `json:"more_dead"` // there are dead letters that were not looked at
	Retrying     int       `json:"retrying"`
	MoreRetrying bool      `json:"more_retrying"`
	ID           string    `json:"id"` // of the last
	Last         time.Time `json:"last"`
	Error        string    `json:"error"`
}

// A Kind is the runs of a type in a queue, in the last hour or a little more.
type Kind struct {
	Queue       string  `json:"queue"`
	Type        string  `json:"type"` // sums.Other: of types that have no figures of their own
	Running     int     `json:"running"`
	Dead        int     `json:"dead"`     // of those of which failures are made
	Retrying    int     `json:"retrying"` // likewise
	Done        int64   `json:"done"`
	Failed      int64   `json:"failed"`
	LateSeconds float64 `json:"late_seconds"` // on average
	TookSeconds float64 `json:"took_seconds"` // on average
	MostSeconds float64 `json:"most_seconds"` // 99 of 100 runs took at most as long

	Hour  sums.Sums  `json:"-"`
	Total *sums.Sums `json:"-"` // since the type is known; nil if the store has none
}

// A Parent is a task that others wait for.
type Parent struct {
	Queue    string          `json:"queue"`
	ID       string          `json:"id"`
	Type     string          `json:"type,omitempty"`
	State    taskqueue.State `json:"state,omitempty"` // 0: it is not known any more
	Error    string          `json:"error,omitempty"`
	Children int             `json:"children"` // of the first MaxSample that wait
	More     bool            `json:"more"`     // others wait that were not looked at
}

// A Kept is tasks that a limit counts together.
type Kept struct {
	Queue   string          `json:"queue"`
	Key     string          `json:"key,omitempty"` // none: the limit is that of a type
	Limit   taskqueue.Limit `json:"limit"`
	Running int             `json:"running"`
	Waiting int             `json:"waiting"` // those that are ready and kept, of the last MaxSample
	More    bool            `json:"more"`    // others are kept that were not looked at
}

// A Task is what a picture has of a task that runs. Its texts are cut, and fit to be shown.
type Task struct {
	Queue           string    `json:"queue"`
	ID              string    `json:"id"`
	Type            string    `json:"type"`
	Attempt         int       `json:"attempt"`
	Worker          string    `json:"worker,omitempty"`
	StartedAt       time.Time `json:"started_at,omitzero"`
	LeaseEnd        time.Time `json:"lease_end,omitzero"`
	CancelRequested bool      `json:"cancel_requested,omitempty"`
	Progress        string    `json:"progress,omitempty"`
}

func newTask(i taskqueue.Info) Task {
	return Task{
		Queue: i.Queue, ID: i.ID, Type: i.Type, Attempt: i.Attempt, Worker: i.Worker,
		StartedAt: i.StartedAt, LeaseEnd: i.LeaseEnd, CancelRequested: i.CancelRequested,
		Progress: plain.Text(plain.Head(string(i.Progress[:min(len(i.Progress), maxText+1)]), maxText)),
	}
}

// A Periodic is a periodic job of a queue.
type Periodic struct {
	Queue string `json:"queue"`
	taskqueue.Periodic
	NextAt time.Time `json:"next,omitzero"` // none: this program does not understand the schedule
}
