package jobqueue_test

import (
	"cmp"
	"slices"
	"time"

	"github.com/ambit-go/ambit/jobqueue"
)

// A job of the model: distinct by key; rev tells apart jobs of one key.
type job struct{ key, rev int }

// settings are the options of a queue and of its model.
type settings struct {
	again, priority, retry bool
	attempts, capacity     int
}

func (s settings) rank(j job) int {
	if s.priority {
		return -(j.rev % 3)
	}
	return 0
}

func retryDelay(failed int) time.Duration { return time.Duration(failed) * 2 * time.Millisecond }

// A model is a queue that is easy to believe: one slice of all the jobs that are
// known, looked through from the start each time. Times are since it was made.
type model struct {
	settings
	jobs    []*known
	waiters []*asker
	drains  int // calls of Drain that wait
	seq     int
	order   int // counts takes
	now     time.Duration
	refuse  bool
	closed  bool
	stats   jobqueue.Stats
	dead    []job
}

// A known is a job that a model knows.
type known struct {
	job
	seq, runs, failed int
	delayed           bool
	at, since         time.Duration
	by                any // who has taken it
	taken             int // which take of the queue that was
	again             *rerun
}

type rerun struct {
	job
	at time.Duration
}

// An asker is a call of Take.
type asker struct {
	by   any
	most int
	got  []job
	err  error
	over bool
}

func (m *model) find(key int) *known {
	for _, k := range m.jobs {
		if k.key == key {
			return k
		}
	}
	return nil
}

// of returns the jobs for which is holds, in the order less.
func (m *model) of(is func(*known) bool, less func(a, b *known) int) (all []*known) {
	for _, k := range m.jobs {
		if is(k) {
			all = append(all, k)
		}
	}
	slices.SortStableFunc(all, less)
	return all
}

func (m *model) byPlace(a, b *known) int {
	return cmp.Or(cmp.Compare(m.rank(a.job), m.rank(b.job)), cmp.Compare(a.seq, b.seq))
}

func byTime(a, b *known) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq)) }

func byTake(a, b *known) int { return cmp.Compare(a.taken, b.taken) }

func (m *model) ready() []*known {
	return m.of(func(k *known) bool { return k.by == nil && !k.delayed }, m.byPlace)
}

func (m *model) delayed() []*known {
	return m.of(func(k *known) bool { return k.delayed }, byTime)
}

// retries counts the delayed jobs that Drain waits for.
func (m *model) retries() (n int) {
	for _, k := range m.delayed() {
		if k.runs > 0 {
			n++
		}
	}
	return n
}

func (m *model) inProgress() []*known {
	return m.of(func(k *known) bool { return k.by != nil }, m.byPlace)
}

func (m *model) heldBy(by any) []*known {
	return m.of(func(k *known) bool { return k.by == by }, byTake)
}

func (m *model) queued() []*known { return append(m.ready(), m.delayed()...) }

func (m *model) add(j job, d time.Duration) bool {
	k := m.find(j.key)
	switch {
	case m.refuse:
		m.stats.Refused++
		return false
	case k != nil && m.again && k.by != nil:
		at := m.now + d
		if k.again == nil {
			m.stats.Added++
		} else {
			at = min(at, k.again.at)
		}
		k.again = &rerun{j, at}
		return true
	case k != nil:
		m.stats.Duplicates++
		return false
	case m.capacity > 0 && len(m.queued()) >= m.capacity:
		m.stats.Refused++
		return false
	}
	m.stats.Added++
	m.enter(&known{job: j}, m.now+d)
	return true
}

// enter makes k wait: for its turn, or for its time.
func (m *model) enter(k *known, at time.Duration) {
	if k.seq == 0 {
		m.seq++
		k.seq = m.seq
	}
	k.delayed, k.at, k.since = at > m.now, at, m.now
	if m.find(k.key) != k {
		m.jobs = append(m.jobs, k)
	}
}

// ripen readies what is due; a closed queue has no use for it.
func (m *model) ripen() {
	if m.closed {
		return
	}
	for _, k := range m.delayed() {
		if k.at <= m.now {
			if k.runs == 0 {
				k.seq = 0
			}
			m.enter(k, m.now)
		}
	}
}

func (m *model) take(a *asker) {
	if m.waiters = append(m.waiters, a); m.closed {
		m.serve()
	}
}

// serve is to be called at the end of each step.
func (m *model) serve() {
	idle := func() bool { return len(m.inProgress()) == 0 && (m.closed || len(m.ready())+m.retries() == 0) }
	for len(m.waiters) > 0 && (m.closed || len(m.ready()) > 0) {
		a := m.waiters[0]
		m.waiters, a.over = m.waiters[1:], true
		if m.closed {
			a.err = jobqueue.ErrClosed
			continue
		}
		for _, k := range m.ready()[:min(a.most, len(m.ready()))] {
			m.stats.Taken++
			m.stats.QueuedTime += m.now - k.since
			m.order++
			k.by, k.taken, k.since = a.by, m.order, m.now
			k.runs++
			a.got = append(a.got, k.job)
		}
	}
	if m.refuse && idle() {
		m.drains = 0
		if !m.closed {
			m.closed = true
			m.serve()
		}
	}
}

func (m *model) forget(k *known) {
	m.jobs = slices.DeleteFunc(m.jobs, func(o *known) bool { return o == k })
}

func (m *model) endRun(k *known) {
	k.by = nil
	m.stats.InProgressTime += m.now - k.since
}

func (m *model) end(k *known) {
	m.forget(k)
	if k.again != nil {
		m.enter(&known{job: k.again.job}, k.again.at)
	}
}

func (m *model) done(k *known) {
	m.endRun(k)
	m.stats.Done++
	m.end(k)
}

func (m *model) stop(k *known) {
	m.endRun(k)
	m.goBack(k, m.now)
}

// goBack puts k back, as the newest job of its key.
func (m *model) goBack(k *known, at time.Duration) {
	m.stats.Returned++
	if k.again != nil {
		k.job, k.again = k.again.job, nil
		m.stats.Replaced++
	}
	m.enter(k, at)
}

func (m *model) fail(k *known) {
	m.endRun(k)
	m.stats.Failed++
	k.failed++
	if k.failed == m.attempts {
		m.stats.Dead++
		m.dead = append(m.dead, k.job)
		m.end(k)
		return
	}
	at := m.now
	if m.retry && !m.closed {
		at += retryDelay(k.failed)
	}
	m.goBack(k, at)
}

func (m *model) remove(key int) bool {
	k := m.find(key)
	switch {
	case k == nil || k.by != nil && k.again == nil:
		return false
	case k.by != nil:
		k.again = nil
		m.stats.Removed++
		return true
	}
	m.stats.Removed++
	m.forget(k)
	return true
}
