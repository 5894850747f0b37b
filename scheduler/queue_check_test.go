package scheduler

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"testing"
)

// check compares the queue with the list.
func (m *queueModel) check() {
	q := &m.q
	counts := q.ended
	pending, running := q.snapshot(&counts)
	started := 0 // and pending still
	if m.current != nil && !m.begun {
		started = 1
	}
	live := len(m.ready) + len(m.delayed)
	if pending != live || q.pending() != live-started || running != (m.current != nil && m.begun) || counts != m.ended {
		m.fault("tally %d pending, running %v, ended %v; pending %d; in truth %d (%d started), %v",
			pending, running, counts, q.pending(), live, started, m.ended)
	}
	sum := uint64(pending)
	for _, n := range counts {
		sum += n
	}
	if running {
		sum++
	}
	if sum != q.seq || sum != uint64(m.items) {
		m.fault("%d were accepted, %d are accounted for", q.seq, sum)
	}
	m.checkList()
	m.checkHeap()
}

// checkList walks the chunks.
func (m *queueModel) checkList() {
	q := &m.q
	want := slices.Clone(m.ready)
	if m.current != nil && !m.begun {
		want = want[1:]
	}
	length, dead, chunks := 0, 0, 0
	next := q.from
	if q.end > 0 {
		next = max(next, int(q.next.Load()))
	}
	for c := q.head; c != nil; c = c.next {
		if chunks++; c.next == nil && c != q.tail {
			m.fault("the last chunk is not the tail")
		}
		for i, e := range c.entries {
			inBatch := c == q.head && i < q.end
			switch {
			case c == q.head && i < next: // has ended, or runs
				if e.post != nil || i < q.from && e.n != nil && e.n != gone || e.n != nil && e.n != gone && e.n.status() != Pending && e.n.plain != nil {
					m.fault("entry %d has been run and is kept", i)
				}
			case c == q.tail && i >= q.to:
				if e.post != nil || e.n != nil && e.n != gone {
					m.fault("entry %d is behind the end and is kept", i)
				}
			case e.n == gone:
				if !inBatch {
					dead++
				}
				if e.post != nil {
					m.fault("a gap keeps a function")
				}
			case e.n != nil && e.n.status() > Running && inBatch: // cancelled alone
				if e.n.plain != nil {
					m.fault("a cancelled task keeps its function")
				}
			default:
				if !inBatch {
					length++
				}
				if len(want) == 0 || want[0].n != e.n || (e.n == nil) != (e.post != nil) {
					m.fault("entry %d of chunk %d is not what it should be", i, chunks)
					return
				}
				if e.n == nil {
					if e.post(); m.ran != want[0].id {
						m.fault("entry %d of chunk %d is #%d instead of %v", i, chunks, m.ran, want[0])
					}
				} else if e.n.on != onList || e.n.chunk != c || e.n.index != i {
					m.fault("%v believes that it is elsewhere", want[0])
				}
				want = want[1:]
			}
		}
	}
	if len(want) > 0 || length != q.length || dead != q.gaps {
		m.fault("%d are missing; length %d, counted %d; dead %d, counted %d", len(want), q.length, length, q.gaps, dead)
	}
	if chunks*chunkSize > 2*(len(m.ready)+3*chunkSize) {
		m.fault("%d entries are kept for %d tasks", chunks*chunkSize, len(m.ready))
	}
	if q.spare != nil {
		if q.spare.next != nil || slices.ContainsFunc(q.spare.entries[:], func(e entry) bool { return e.post != nil || e.n != nil }) {
			m.fault("the spare chunk keeps something")
		}
	}
}

// checkHeap looks for what is delayed, and at what is left behind.
func (m *queueModel) checkHeap() {
	for i, n := range m.q.heap {
		if n.on != onHeap || n.index != i || n.status() != Pending {
			m.fault("%d in the heap: list %d, index %d, %v", i, n.on, n.index, n.status())
		}
		if i > 0 && m.q.heap.Less(i, (i-1)/2) {
			m.fault("the heap is out of order at %d", i)
		}
	}
	for _, n := range m.q.heap[len(m.q.heap):cap(m.q.heap)] {
		if n != nil {
			m.fault("the heap keeps what was taken out")
		}
	}
}

// run does what the bytes say and returns what was wrong.
func (m *queueModel) run() string {
	for len(m.data) > 0 && m.wrong == "" {
		m.step()
		m.check()
	}
	if m.wrong != "" {
		return m.wrong
	}
	for m.c != nil || len(m.ready) > 0 { // the rest comes out in order
		if m.c == nil {
			m.detach()
		}
		if m.start(); m.wrong != "" {
			break
		}
	}
	m.check()
	return m.wrong
}

func queueBytes(seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 11))
	data := make([]byte, 20+rng.IntN(600))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	return data
}

func TestTheQueueIsAList(t *testing.T) {
	for seed := range uint64(10_000 / RaceFactor) {
		data := queueBytes(seed)
		if wrong := (&queueModel{data: data}).run(); wrong != "" {
			least := fewer(data, func(data []byte) bool { return (&queueModel{data: data}).run() != "" })
			t.Fatalf("seed %d: %s\nas small as it gets: %#v: %s", seed, wrong, least, (&queueModel{data: least}).run())
		}
	}
}

// fewer leaves out bytes of data for as long as what is left still fails.
func fewer(data []byte, fails func([]byte) bool) []byte {
	for size := len(data) / 2; size > 0; size /= 2 {
		for i := 0; i+size <= len(data); {
			if try := slices.Concat(data[:i], data[i+size:]); fails(try) {
				data = try
			} else {
				i += size
			}
		}
	}
	return data
}

// TestTheQueueModelFindsWhatIsPlanted shows that the check can fail.
func TestTheQueueModelFindsWhatIsPlanted(t *testing.T) {
	m := &queueModel{}
	for range 30 {
		m.push()
	}
	m.data = []byte{12, 99}
	m.ready[3], m.ready[4] = m.ready[4], m.ready[3]
	if m.run() == "" {
		t.Error("two tasks in the wrong order were not found")
	}
	m = &queueModel{}
	for range 3 {
		m.delay()
	}
	heap.Pop(&m.q.heap)
	if m.check(); m.wrong == "" {
		t.Error("a task that is missing was not found")
	}
}

func FuzzQueue(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(queueBytes(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if wrong := (&queueModel{data: data[:min(len(data), 1_000)]}).run(); wrong != "" {
			t.Fatal(wrong)
		}
	})
}
