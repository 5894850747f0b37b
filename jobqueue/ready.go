package jobqueue

// This file is the order of jobs: the set of the ready jobs, and the list that this set
// and a holder keep jobs in.

// before reports whether a is to be taken before b.
func before[K comparable, T any](a, b *node[K, T]) bool {
	if a.priority != b.priority {
		return a.priority > b.priority
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

// A readySet is the jobs that may be taken, in order. A job that comes after all
// others is put at the end of a list, the run, at a constant cost. A job that
// has to overtake others, because it came back or is more urgent, is put in a
// heap. The first job is the first of the run or of the heap. Measured at a
// depth of 100,000, with the heap alone adding and taking a job took four times
// as long.
type readySet[K comparable, T any] struct {
	run  list[K, T]
	heap heap[*node[K, T]]
}

func (s *readySet[K, T]) len() int { return s.run.len + s.heap.len() }

func (s *readySet[K, T]) push(n *node[K, T]) {
	if n.inRun = s.run.last == nil || before(s.run.last, n); n.inRun {
		s.run.push(n)
	} else {
		s.heap.push(n)
	}
}

func (s *readySet[K, T]) remove(n *node[K, T]) {
	if n.inRun {
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

// A list is a chain of jobs in the order of their arrival. A job is in at most
// one list at a time.
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
