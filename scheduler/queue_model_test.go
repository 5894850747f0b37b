package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// The queue is plain data, so that it can be compared after every operation
// with a list that is too simple to be wrong. The operations are decoded from
// bytes: a seed makes some, a fuzzer makes more, and those that fail can be made
// fewer by leaving bytes out.

// modelItem is a task, as the list knows it.
type modelItem struct {
	id    int
	n     *node // nil: a post
	post  func()
	batch bool // it is in the batch
}

func (it *modelItem) String() string { return fmt.Sprintf("#%d", it.id) }

// queueModel is a queue, the list, and whoever drains it.
type queueModel struct {
	data  []byte
	q     queue
	now   time.Duration
	items int

	ready   []*modelItem // in order, the batch first
	delayed []*modelItem
	current *modelItem // started last, and not settled
	begun   bool       // it was claimed for running
	ended   [Exited + 1]uint64

	c         *chunk // the batch, as the drain knows it
	rest, end int
	ran       int // which post was called last
	wrong     string
}

// next decodes a choice among n; 0 when the bytes are used up.
func (m *queueModel) next(n int) int {
	if len(m.data) == 0 {
		return 0
	}
	b := m.data[0]
	m.data = m.data[1:]
	return int(b) % n
}

func (m *queueModel) fault(format string, args ...any) {
	if m.wrong == "" {
		m.wrong = fmt.Sprintf(format, args...)
	}
}

func (m *queueModel) item(post bool) (*modelItem, entry) {
	m.items++
	it := &modelItem{id: m.items}
	seq := m.q.accept()
	if post {
		it.post = func() { m.ran = it.id }
		return it, entry{post: it.post}
	}
	it.n = &node{seq: seq, plain: func() {}}
	if m.next(4) == 0 {
		it.n.period = &period{}
	}
	return it, entry{n: it.n}
}

func (m *queueModel) push() {
	it, e := m.item(m.next(2) == 0)
	m.q.push(e)
	m.ready = append(m.ready, it)
}

func (m *queueModel) delay() {
	it, _ := m.item(false)
	it.n.at = m.now + 1 + time.Duration(m.next(8))
	m.q.delay(it.n)
	m.delayed = append(m.delayed, it)
}

func (m *queueModel) ripen() {
	m.now += time.Duration(m.next(4))
	m.q.queueDue(m.now)
	m.sortDelayed()
	for len(m.delayed) > 0 && m.delayed[0].n.at <= m.now {
		m.ready = append(m.ready, m.delayed[0])
		m.delayed = m.delayed[1:]
	}
}

func (m *queueModel) sortDelayed() {
	slices.SortFunc(m.delayed, func(a, b *modelItem) int {
		if a.n.at != b.n.at {
			return cmp.Compare(a.n.at, b.n.at)
		}
		return int(a.n.seq) - int(b.n.seq)
	})
}

// detach takes a batch. How many entries there are is up to the queue, but they
// are the first, and there is one unless nothing is pending.
func (m *queueModel) detach() {
	most := 1 + m.next(100)
	m.c, m.rest, m.end = m.q.takeBatch(most)
	if len(m.ready) == 0 {
		if m.c != nil {
			m.fault("a batch of nothing")
		}
		return
	}
	if m.c == nil || m.end-m.rest > most {
		m.fault("%d entries are ready, at most %d are wanted, the batch is %d to %d", len(m.ready), most, m.rest, m.end)
		return
	}
	live := 0
	for _, e := range m.c.entries[m.rest:m.end] {
		if e.n != gone {
			m.ready[live].batch = true
			live++
		}
	}
	if live == 0 {
		m.fault("nothing in the batch, %d are ready", len(m.ready))
	}
}

// start starts the next entry of the batch, as a drain does.
func (m *queueModel) start() {
	m.over()
	if m.rest == m.end {
		m.settle()
		return
	}
	m.rest++
	if !m.q.start(m.rest-1) && m.rest-1 >= m.q.limit {
		m.rest = m.end
		m.settle()
		return
	}
	e := &m.c.entries[m.rest-1]
	switch {
	case e.n == gone:
	case e.n != nil && e.n.status() == Cancelled:
	case len(m.ready) == 0:
		m.fault("an entry is started, none is ready")
	case e.n != nil:
		m.current, m.begun = m.ready[0], false
		if m.current.n != e.n {
			m.fault("started is another than %v", m.current)
		}
	default:
		m.current, m.begun = m.ready[0], true
		f := e.post
		e.post = nil
		if f(); m.ran != m.current.id {
			m.fault("#%d was started instead of %v", m.ran, m.current)
		}
		m.ready = m.ready[1:]
	}
}

// begin claims what was started for running.
func (m *queueModel) begin() {
	if m.current == nil || m.begun {
		return
	}
	if !m.current.n.claim(Running) {
		m.fault("%v cannot be run", m.current)
	}
	m.current.n.forget()
	m.begun, m.ready = true, m.ready[1:]
}

// over ends what runs.
func (m *queueModel) over() {
	m.begin()
	if it := m.current; it != nil {
		m.current = nil
		if m.ended[Done]++; it.n != nil {
			it.n.state.Store(uint32(Done))
		}
	}
}

// settle ends the batch, whatever is left of it.
func (m *queueModel) settle() {
	m.over()
	m.q.endBatch(m.rest)
	m.unbatch()
}

func (m *queueModel) unbatch() {
	m.c = nil
	for _, it := range m.ready {
		it.batch = false
	}
}

// crash ends the batch with a panic.
func (m *queueModel) crash() {
	m.begin()
	it := m.current
	if it == nil {
		return
	}
	m.current = nil
	m.ended[Panicked]++
	if it.n == nil {
		m.q.ended[Panicked]++
		m.c.entries[m.rest-1], m.c.nodes = entry{n: gone}, true
	} else {
		it.n.state.Store(uint32(Panicked))
	}
	m.q.endBatch(m.rest)
	m.unbatch()
}

// again ends the batch with a periodic task, which is to run again.
func (m *queueModel) again() {
	m.begin()
	it := m.current
	if it == nil || it.n == nil || it.n.period == nil {
		return
	}
	m.current = nil
	m.q.endBatch(m.rest)
	m.unbatch()
	it.n.state.Store(uint32(Pending))
	it.batch = false
	if m.next(2) == 0 {
		m.q.push(entry{n: it.n})
		m.ready = append(m.ready, it)
	} else {
		it.n.at = m.now + 1 + time.Duration(m.next(8))
		m.q.delay(it.n)
		m.delayed = append(m.delayed, it)
	}
}

// step does one operation.
func (m *queueModel) step() {
	op := m.next(32)
	switch {
	case op < 8:
		for range 1 + m.next(24) {
			m.push()
		}
	case op < 10:
		for range 1 + m.next(4) {
			m.delay()
		}
	case op < 12:
		m.ripen()
	case op < 20 && m.c == nil:
		m.detach()
	case op < 18:
		for range 1 + m.next(8) {
			if m.c != nil {
				m.start()
			}
		}
	case op < 19:
		m.begin()
	case op < 20:
		m.settle()
	case op < 22:
		m.again()
	case op < 23:
		m.crash()
	case op < 26:
		for range 1 + m.next(40) {
			m.take(false)
		}
	case op < 28:
		for range 1 + m.next(40) {
			m.take(true)
		}
	case op < 29:
		m.claimReady()
	case op < 30:
		m.claimPeriodic()
	case op < 31:
		m.claimDelayed()
	default:
		for range 1 + m.next(40) {
			m.claimOldest()
		}
	}
}
