package sqlstore

import (
	"sync"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
)

// dues are when the first task of each class is due; -1: there is none.
type dues [taskqueue.Priorities]int64

func noDues() (d dues) {
	for class := range d {
		d[class] = -1
	}
	return d
}

// add notes a task, if it waits.
func (d *dues) add(r *record) {
	if class := classOf(r.Priority); r.waits() && (d[class] < 0 || r.due < d[class]) {
		d[class] = r.due
	}
}

func (d *dues) any() bool { return *d != noDues() }

// fronts are where this process looks for what is due: rows before that were claimed, as a
// rule, and a database that has not cleaned up behind them would look at each again.
type fronts struct {
	mu sync.Mutex
	by map[string]*front // by queue
}

// A front is that of a queue.
type front struct {
	due     dues      // when the last task of each class was due that a claim has found
	lowered uint64    // how many times something was added before it
	whole   time.Time // when a claim has looked from the beginning last
	folded  time.Time // when a claim has looked for rows of processes that have ended
	buried  bool      // there may be more dead letters than when a claim has looked for those that are not kept
	kept    int       // MaxDead, as it was then
	looked  time.Time // when that was
	busy    bool      // the last claim has found something, in a queue without limits
}

// wholeEvery is how long what others have added before the front may stay unseen.
const wholeEvery = time.Second

func (f *fronts) ofLocked(queue string) *front {
	if f.by == nil {
		f.by = map[string]*front{}
	}
	if f.by[queue] == nil {
		f.by[queue] = &front{whole: time.Now()}
	}
	return f.by[queue]
}

// of returns where to look in each class.
func (f *fronts) of(queue string) dues {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ofLocked(queue).due
}

// look returns the front for a claim, which looks from the beginning once in a while.
func (f *fronts) look(queue string) front {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.ofLocked(queue)
	if time.Since(of.whole) >= wholeEvery {
		of.due, of.whole = dues{}, time.Now()
	}
	return *of
}

// found notes where a claim has found tasks, unless something was added before that
// meanwhile, which the claim may not have seen.
func (f *fronts) found(queue string, due dues, lowered uint64, busy bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.ofLocked(queue)
	if of.busy = busy; of.lowered == lowered {
		of.due = due
	}
}

// lower has claims look from where tasks are due that this process has written; negative:
// there are none in the class. They are in the database by now: a claim that has begun before
// does not move the front past them.
func (f *fronts) lower(queue string, first dues) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.ofLocked(queue)
	for class, due := range first {
		if due >= 0 && due < of.due[class] {
			of.due[class] = due
		}
		if due >= 0 {
			of.lowered++
		}
	}
}

// foldEvery is how often a process looks for what processes have left that have ended.
const foldEvery = time.Minute

// folds reports whether it is time to do that.
func (f *fronts) folds(queue string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.ofLocked(queue)
	due := time.Since(of.folded) >= foldEvery
	if due {
		of.folded = time.Now()
	}
	return due
}

// buried notes that there are dead letters which the next claim is to look at.
func (f *fronts) buried(queue string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ofLocked(queue).buried = true
}

// trims reports whether a claim is to look for dead letters behind the newest, of which so many are kept.
func (f *fronts) trims(queue string, kept int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.ofLocked(queue)
	due := of.buried || of.kept != kept || time.Since(of.looked) >= wholeEvery
	if due {
		of.buried, of.kept, of.looked = false, kept, time.Now()
	}
	return due
}
