package jobqueue

// This file is the order of jobs: the set of the ready ones, the heap under it
// and under the delayed ones, and the list of what somebody has taken.

// before reports whether a is to be taken before b.
func before[K comparable, T any](a, b *node[K, T]) bool {
	if a.rank != b.rank {
		return a.rank < b.rank
	}
	return a.seq < b.seq
}

// sooner reports whether a is ready before b.
func sooner[K comparable, T any](a, b *node[K, T]) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	return a.seq < b.seq
}

// A readySet is the jobs that may be taken, in order. Those that came in order
// are in a list, the run, at a constant cost; those that did not, because they
// came back or are more urgent, are in a heap. The first is that of one of the
// two. Measured at a depth of 100,000, with the heap alone adding and taking
// a job cost four times as much.
type readySet[K comparable, T any] struct {
	run  list[K, T]
	heap heap[*node[K, T]]
}

func (s *readySet[K, T]) len() int { return s.run.len + s.heap.len() }

func (s *readySet[K, T]) push(n *node[K, T]) {
	if n.listed = s.run.last == nil || before(s.run.last, n); n.listed {
		s.run.push(n)
	} else {
		s.heap.push(n)
	}
}

func (s *readySet[K, T]) remove(n *node[K, T]) {
	if n.listed {
		s.run.remove(n)
	} else {
		s.heap.remove(n)
	}
}

// pop takes the first job out. There must be one.
func (s *readySet[K, T]) pop() *node[K, T] {
	n := s.run.first
	if m := s.heap.min(); m != nil && (n == nil || before(m, n)) {
		n = m
	}
	s.remove(n)
	return n
}

// A list is a chain of jobs in the order of their arrival. A job is in one at a
// time.
type list[K comparable, T any] struct {
	first, last *node[K, T]
	len         int
}

func (l *list[K, T]) push(n *node[K, T]) {
	if n.prev = l.last; n.prev != nil {
		n.prev.next = n
	} else {
		l.first = n
	}
	l.last = n
	l.len++
}

func (l *list[K, T]) remove(n *node[K, T]) {
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		l.first = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		l.last = n.prev
	}
	n.prev, n.next = nil, nil
	l.len--
}

// all returns what is in the list, which may then change.
func (l *list[K, T]) all() []*node[K, T] {
	nodes := make([]*node[K, T], 0, l.len)
	for n := l.first; n != nil; n = n.next {
		nodes = append(nodes, n)
	}
	return nodes
}

// A placed knows where it is in a heap.
type placed interface {
	comparable
	place() *int
}

func (n *node[K, T]) place() *int { return &n.index }

// A heap is a binary heap whose elements know their places. The one in package
// container boxes them.
type heap[E placed] struct {
	elems []E
	less  func(a, b E) bool
}

func (h *heap[E]) len() int { return len(h.elems) }

// min returns the first element, the zero value if there is none.
func (h *heap[E]) min() (first E) {
	if len(h.elems) > 0 {
		first = h.elems[0]
	}
	return first
}

func (h *heap[E]) push(e E) {
	h.elems = append(h.elems, e)
	h.up(len(h.elems) - 1)
}

func (h *heap[E]) remove(e E) {
	i, last := *e.place(), len(h.elems)-1
	moved := h.elems[last]
	var none E
	h.elems[last] = none
	if h.elems = h.elems[:last]; cap(h.elems) > 64 && last < cap(h.elems)/4 {
		h.elems = append(make([]E, 0, cap(h.elems)/2), h.elems...)
	}
	if moved != e {
		h.set(i, moved)
		h.up(h.down(i))
	}
}

func (h *heap[E]) set(i int, e E) {
	h.elems[i] = e
	*e.place() = i
}

// up moves the element at i to where nothing above it is greater.
func (h *heap[E]) up(i int) {
	e := h.elems[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(e, h.elems[parent]) {
			break
		}
		h.set(i, h.elems[parent])
		i = parent
	}
	h.set(i, e)
}

// down moves the element at i to where nothing below it is less, and returns
// where that is.
func (h *heap[E]) down(i int) int {
	e := h.elems[i]
	for {
		child := 2*i + 1
		if child >= len(h.elems) {
			break
		}
		if right := child + 1; right < len(h.elems) && h.less(h.elems[right], h.elems[child]) {
			child = right
		}
		if !h.less(h.elems[child], e) {
			break
		}
		h.set(i, h.elems[child])
		i = child
	}
	h.set(i, e)
	return i
}
