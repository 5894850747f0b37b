package scheduler_test

import (
	"cmp"
	"slices"
	"time"

	"github.com/ambit-go/ambit/scheduler"
)

// The actions of a task of a program.
const (
	actNothing = iota
	actSleep   // for a while
	actHold    // until it is let go
	actPanic
	actExit
	actChild  // schedules another
	actLater  // does so with a delay
	actCancel // cancels another
	actSweep  // CancelPending
	actCount
)

// An orderTask is a task of a program, as the model knows it.
type orderTask struct {
	id, act  int
	arg      time.Duration
	target   int  // of actCancel
	bare     bool // nobody has a handle
	every    bool
	period   time.Duration
	delay    bool
	burst    bool
	most     int // runs, then it cancels itself; 0: no end
	at, tick time.Duration
	seq      int
	runs     int
	stopped  bool
	state    scheduler.State
}

// child is what a task schedules on its run.
func (it *orderTask) child() *orderTask { return &orderTask{id: it.id + 1_000*it.runs} }

// An orderModel says what a worker does: one task after the other, by hand.
type orderModel struct {
	capacity  int
	full      scheduler.Full
	recovers  bool // RecoverPanics
	closes    bool // CloseOnPanic
	refuse    int  // the pool refuses every such submission; 0: none
	now       time.Duration
	tasks     map[int]*orderTask
	queue     []*orderTask
	delayed   []*orderTask
	running   *orderTask
	until     time.Duration // the running task sleeps; 0: it is held
	log       []int
	seq       int
	submitted int
	refusing  bool
	ambiguous bool // two things happen at one instant: nobody can tell
}

func (m *orderModel) end(it *orderTask, to scheduler.State) {
	it.state = to
	is := func(other *orderTask) bool { return other == it }
	m.queue = slices.DeleteFunc(m.queue, is)
	m.delayed = slices.DeleteFunc(m.delayed, is)
}

// schedule returns false if it is refused with an error.
func (m *orderModel) schedule(it *orderTask, d time.Duration) bool {
	if m.refusing {
		return false
	}
	if m.capacity > 0 && len(m.queue)+len(m.delayed) >= m.capacity {
		switch m.full {
		case scheduler.Fail:
			return false
		case scheduler.DropNewest:
			m.seq++
			it.state = scheduler.Rejected
			m.tasks[it.id] = it
			return true
		default:
			m.end(slices.Concat(m.queue, m.delayed)[0], scheduler.Rejected)
		}
	}
	m.seq++
	it.seq, it.at, it.tick = m.seq, m.now+d, m.now+d
	m.tasks[it.id] = it
	m.wait(it)
	m.kick()
	return true
}

// wait puts it where it belongs: delayed, or in the queue.
func (m *orderModel) wait(it *orderTask) {
	if it.at <= m.now {
		m.queue = append(m.queue, it)
		return
	}
	m.delayed = append(m.delayed, it)
	slices.SortFunc(m.delayed, func(a, b *orderTask) int {
		if a.at != b.at {
			return cmp.Compare(a.at, b.at)
		}
		return a.seq - b.seq
	})
}

// kick submits the worker, if it has something to do and nobody is at it.
func (m *orderModel) kick() {
	for m.running == nil && len(m.queue) > 0 {
		m.submitted++
		if m.refuse > 0 && m.submitted%m.refuse == 0 {
			for _, it := range m.queue {
				it.state = scheduler.Rejected
			}
			m.queue = nil
			return
		}
		m.pump()
	}
}

// pump runs what is queued, until a task takes time or its goroutine is lost.
func (m *orderModel) pump() {
	for m.running == nil && len(m.queue) > 0 {
		it := m.queue[0]
		m.queue = m.queue[1:]
		if lost := m.start(it); lost {
			return
		}
	}
}

// start runs it, and reports whether its goroutine was lost.
func (m *orderModel) start(it *orderTask) (lost bool) {
	m.running, it.state = it, scheduler.Running
	m.log = append(m.log, it.id)
	it.runs++
	if it.every && it.runs == it.most {
		it.stopped = true
	}
	switch it.act {
	case actSleep:
		m.until = m.now + it.arg
		return false
	case actHold:
		m.until = 0
		return false
	case actPanic:
		return m.over(it, scheduler.Panicked)
	case actExit:
		return m.over(it, scheduler.Exited)
	case actChild:
		m.schedule(it.child(), 0)
	case actLater:
		m.schedule(it.child(), it.arg)
	case actCancel:
		m.cancel(it.target)
	case actSweep:
		m.sweep()
	}
	return m.over(it, scheduler.Done)
}

func (m *orderModel) cancel(id int) {
	it := m.tasks[id]
	switch {
	case it == nil || it.bare:
	case it.state == scheduler.Pending:
		m.end(it, scheduler.Cancelled)
	default:
		it.stopped = true
	}
}

// sweep is CancelPending.
func (m *orderModel) sweep() {
	for _, it := range slices.Concat(m.queue, m.delayed) {
		m.end(it, scheduler.Cancelled)
	}
	if m.running != nil {
		m.running.stopped = true
	}
}

func (m *orderModel) close() {
	m.refusing = true
	m.sweep()
}

func (m *orderModel) drain() {
	m.refusing = true
	for _, it := range slices.Concat(m.queue, m.delayed) {
		if it.every || slices.Contains(m.delayed, it) {
			m.end(it, scheduler.Cancelled)
		}
	}
}

// over is called when it has returned, or worse.
func (m *orderModel) over(it *orderTask, to scheduler.State) (lost bool) {
	m.running, it.state = nil, to
	switch {
	case to == scheduler.Panicked:
		if m.closes {
			m.close()
		}
		return !m.recovers
	case to == scheduler.Exited:
		return true
	case !it.every:
	case it.stopped || m.refusing:
		it.state = scheduler.Cancelled
	default:
		it.state = scheduler.Pending
		m.again(it)
	}
	return false
}

// again finds the next time of a periodic task.
func (m *orderModel) again(it *orderTask) {
	switch {
	case it.period == 0:
		it.at = m.now
	case it.delay:
		it.at = m.now + it.period
	default:
		it.tick += it.period
		for !it.burst && it.tick < m.now {
			it.tick += it.period
		}
		it.at = it.tick
	}
	m.wait(it)
}

// release lets go the task that is held.
func (m *orderModel) release() {
	if m.running != nil && m.until == 0 {
		m.over(m.running, scheduler.Done)
		m.pump()
		m.kick() // if a goroutine was lost
	}
}

// advance has time pass until to.
func (m *orderModel) advance(to time.Duration) {
	for !m.ambiguous {
		sleeps := m.running != nil && m.until > 0 && m.until <= to
		due := len(m.delayed) > 0 && m.delayed[0].at <= to
		switch {
		case sleeps && due && m.until == m.delayed[0].at:
			m.ambiguous = true
		case sleeps && (!due || m.until < m.delayed[0].at):
			m.now = m.until
			m.over(m.running, scheduler.Done)
			m.pump()
			m.kick()
		case due:
			m.now = m.delayed[0].at
			for len(m.delayed) > 0 && m.delayed[0].at <= m.now {
				m.queue = append(m.queue, m.delayed[0])
				m.delayed = m.delayed[1:]
			}
			m.kick()
		default:
			m.now = to
			return
		}
	}
}
