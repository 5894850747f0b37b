// Package board is the live picture of a run: what each job is doing, since
// when, and what it has said last. The runner writes it, views read it.
package board

import (
	"slices"
	"sync"
	"time"

	"github.com/ambit-go/ambit/cirunner/internal/jobreport"
	"github.com/ambit-go/ambit/cirunner/internal/mask"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
)

// A Job is a job as it is at a moment.
type Job struct {
	Name, Stage string

	// Parent is the name of the job that starts the child pipeline that the job is in; empty for none. Name and Stage
	// begin with it, and a slash.
	Parent string

	State   plan.State
	Phase   string        // what is going on while it is Running: "script"
	Attempt int           // 0 before the first
	Ready   time.Time     // when it could first have started, had there been room
	Waited  time.Duration // for room, before all its attempts
	Begin   time.Time
	End     time.Time // of the last attempt; zero while one runs
	Cause   plan.Cause
	Why     string // what a person wants to know about State
	Last    string // the last line it has said
	Log     string // its path, if there is one

	Coverage string           // in percent, as it has printed it; empty if it has not
	Tests    *jobreport.Tests // of its JUnit files; nil without

	Needs  []string // the jobs it has named to wait for; nil if it waits for the stages before
	Phases []Phase  // of the last attempt; only appended to
	Past   []Try    // the attempts before; only appended to
}

// A Phase is what went on in an attempt from a time on.
type Phase struct {
	Name  string
	Begin time.Time
}

// A Try is an attempt that has ended.
type Try struct {
	Begin, End time.Time
	Cause      plan.Cause
	Why        string
	Phases     []Phase
}

// Took returns how long the job has run, in its last attempt, at a time.
func (j *Job) Took(now time.Time) time.Duration {
	switch {
	case j.Begin.IsZero():
		return 0
	case j.End.IsZero():
		return now.Sub(j.Begin)
	}
	return j.End.Sub(j.Begin)
}

// A Watcher is told what happens, one thing at a time, by the goroutine that it
// happens on: a slow Watcher slows the jobs down.
type Watcher interface {
	Changed(Job)                   // to another state, or phase
	Line(job, source, line string) // source is empty, or the name of a service
	Notice(text string)            // of the runner itself
}

// A Board is shared by all that write and read it.
type Board struct {
	mu     sync.Mutex
	status string
	jobs   []Job
	tails  []tail      // of the jobs
	hidden [][]string  // texts of the jobs that are not to be seen
	common []string    // the same of all of them
	since  []time.Time // when each has begun to wait for room
	tell   sync.Mutex  // held while the watcher is told; taken without mu
	watch  Watcher
}

// New returns a board of jobs. watch may be nil. Secrets are seen nowhere on the board; those of one job are told
// by Hide.
func New(jobs []Job, watch Watcher, secrets ...string) *Board {
	if watch == nil {
		watch = nobody{}
	}
	return &Board{jobs: slices.Clone(jobs), tails: make([]tail, len(jobs)), since: make([]time.Time, len(jobs)), hidden: make([][]string, len(jobs)), common: secrets, watch: watch}
}

// Add adds jobs behind all others.
func (b *Board) Add(jobs []Job) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.jobs = append(b.jobs, jobs...)
	b.tails = append(b.tails, make([]tail, len(jobs))...)
	b.hidden = append(b.hidden, make([][]string, len(jobs))...)
	b.since = append(b.since, make([]time.Time, len(jobs))...)
}

// Jobs returns what all jobs are doing, at one moment.
func (b *Board) Jobs() []Job {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.jobs)
}

// SetStatus says what is going on with the run as a whole: that it is being stopped, say.
// It waits for nobody.
func (b *Board) SetStatus(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status = text
}

// Status returns what is going on with the run as a whole; empty if that is nothing out
// of the ordinary.
func (b *Board) Status() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.status
}

// Change changes what is known of a job and tells the watcher.
func (b *Board) Change(i int, change func(*Job)) {
	b.tell.Lock()
	defer b.tell.Unlock()
	b.mu.Lock()
	before := b.jobs[i]
	change(&b.jobs[i])
	b.hideLocked(i, before)
	b.noteLocked(i, before)
	now := b.jobs[i]
	b.mu.Unlock()
	b.watch.Changed(now)
}

// noteLocked keeps what a change would make forgotten: the attempt before, and when
// phases have begun.
func (b *Board) noteLocked(i int, before Job) {
	j := &b.jobs[i]
	if j.Attempt != before.Attempt {
		b.tails[i], j.Phases = tail{}, nil
		if before.Attempt > 0 {
			j.Past = append(j.Past, Try{before.Begin, before.End, before.Cause, before.Why, before.Phases})
		}
	}
	b.waitLocked(i, before)
	if j.Phase != "" && (j.Phase != before.Phase || j.Attempt != before.Attempt) {
		j.Phases = append(j.Phases, Phase{j.Phase, time.Now()})
	}
}

// waitLocked counts how long a job could have run, and had no room. A resource group is room, too.
func (b *Board) waitLocked(i int, before Job) {
	j, now := &b.jobs[i], time.Now()
	if waits(j.State) && !waits(before.State) {
		b.since[i] = now
		if j.Ready.IsZero() {
			j.Ready = now
		}
	}
	if j.State == plan.Running && waits(before.State) {
		j.Waited += now.Sub(b.since[i])
	}
}

func waits(s plan.State) bool { return s == plan.Ready || s == plan.Locked }

// A Line is what a job has said.
type Line struct {
	Source string // empty, or the name of a service
	Own    bool   // it is the runner's own, about the job
	Hidden bool   // it is beyond what is to be shown
}

// Line notes a line that a job, or a service of it, has said, as plain text.
func (b *Board) Line(i int, l Line, raw []byte) {
	line := Clean(raw)
	b.mu.Lock()
	j := &b.jobs[i]
	if l.Source == "" {
		j.Last = line
	}
	if l.Source == "" && !l.Own && j.Phase == script {
		b.tails[i].add(line)
	}
	name, source := j.Name, l.Source
	b.mu.Unlock()
	if l.Hidden {
		return
	}
	b.tell.Lock()
	defer b.tell.Unlock()
	b.watch.Line(name, source, line)
}

// Notice tells something that is about no job.
func (b *Board) Notice(text string) {
	b.tell.Lock()
	defer b.tell.Unlock()
	b.watch.Notice(mask.Text(text, b.common))
}

type nobody struct{}

func (nobody) Changed(Job)                 {}
func (nobody) Line(string, string, string) {}
func (nobody) Notice(string)               {}
