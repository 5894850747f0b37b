package slots

import "container/heap"

// A list holds tasks in the order in which they came. A task is on one list at
// most, so the links are in the task and nothing is allocated.
type list[T, W any] struct{ first, last *Task[T, W] }

func (l *list[T, W]) empty() bool { return l.first == nil }

// push puts t, which is on no list, at the end.
func (l *list[T, W]) push(t *Task[T, W]) {
	if l.last == nil {
		l.first = t
	} else {
		t.prev, l.last.next = l.last, t
	}
	l.last = t
}

// remove takes t, which is on the list, off it.
func (l *list[T, W]) remove(t *Task[T, W]) {
	if t.prev == nil {
		l.first = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		l.last = t.prev
	} else {
		t.next.prev = t.prev
	}
	t.prev, t.next = nil, nil
}

// A queue holds tasks that want to start, in the order in which they will:
// deepest first, then the most urgent, then first come first.
//
// Tasks of the same depth and urgency stand in one line. Most queues have one
// line only, so to join and to leave is most often a step of constant cost, and
// else O(log of the number of lines).
//
// Lines that have become empty are given up at once: a scope that lives for a
// year may see any number of priorities.
type queue[T, W any] struct {
	// lines is a heap: the line whose tasks start next is lines[0]. None of them
	// is empty, but if there is only one, that may be: it is kept for the next
	// task, so that a queue which is often empty costs nothing.
	lines []*line[T, W]

	// byKey finds the lines. It is nil until there are two: most queues never
	// need it. From then on it holds exactly those in lines.
	byKey map[key]*line[T, W]

	// spare is a line that is not in use, nil if there is none. It saves the
	// allocation where lines come and go.
	spare *line[T, W]
}

// A key is what the tasks of a line have in common.
type key struct {
	depth    int32
	priority int
}

func (t *Task[T, W]) key() key { return key{t.Depth, t.Priority} }

// before reports whether tasks of k start before those of other. Numbers are
// compared and never subtracted or negated: the smallest int has no negative.
func (k key) before(other key) bool {
	if k.depth != other.depth {
		return k.depth > other.depth
	}
	return k.priority > other.priority
}

// A line is the tasks of one depth and urgency, first come first.
type line[T, W any] struct {
	key
	list[T, W]
	index int // where it is in lines: the heap moves it
}

// empty reports whether nobody queues.
func (q *queue[T, W]) empty() bool { return q.first() == nil }

// first returns the task that starts next, nil if there is none.
func (q *queue[T, W]) first() *Task[T, W] {
	if len(q.lines) == 0 {
		return nil
	}
	return q.lines[0].first
}

// push puts t at the end of its line, which is made if there is none.
func (q *queue[T, W]) push(t *Task[T, W]) {
	k := t.key()
	l := q.find(k)
	if l == nil {
		l = q.add(k)
	}
	l.push(t)
}

// toFront puts t, which queues, before the others of its line.
func (q *queue[T, W]) toFront(t *Task[T, W]) {
	l := q.find(t.key())
	l.remove(t)
	if l.first == nil {
		l.last = t
	} else {
		t.next, l.first.prev = l.first, t
	}
	l.first = t
}

// remove takes t, which queues, out of its line.
func (q *queue[T, W]) remove(t *Task[T, W]) {
	l := q.find(t.key())
	if l.remove(t); l.empty() && len(q.lines) > 1 {
		heap.Remove((*lineHeap[T, W])(q), l.index)
		delete(q.byKey, l.key)
		q.spare = l
	}
}

// find returns the line of k, nil if there is none. An only line that is empty
// becomes that of k.
func (q *queue[T, W]) find(k key) *line[T, W] {
	if len(q.lines) != 1 {
		return q.byKey[k]
	}
	l := q.lines[0]
	if l.key == k {
		return l
	}
	if !l.empty() {
		return nil
	}
	delete(q.byKey, l.key) // the heap needs no care: it has one element
	l.key = k
	if q.byKey != nil {
		q.byKey[k] = l
	}
	return l
}

// add makes an empty line of k, which there is none of.
func (q *queue[T, W]) add(k key) *line[T, W] {
	if len(q.lines) == 1 && q.byKey == nil {
		q.byKey = map[key]*line[T, W]{q.lines[0].key: q.lines[0]}
	}
	l := q.spare
	if l == nil {
		l = new(line[T, W])
	}
	q.spare, l.key = nil, k
	if q.byKey != nil {
		q.byKey[k] = l
	}
	heap.Push((*lineHeap[T, W])(q), l)
	return l
}

// lineHeap is a queue as package container/heap sees it. It is a type of its own
// so that its methods are none of a queue's.
type lineHeap[T, W any] queue[T, W]

func (h *lineHeap[T, W]) Len() int           { return len(h.lines) }
func (h *lineHeap[T, W]) Less(i, j int) bool { return h.lines[i].before(h.lines[j].key) }
func (h *lineHeap[T, W]) Swap(i, j int) {
	h.lines[i], h.lines[j] = h.lines[j], h.lines[i]
	h.lines[i].index, h.lines[j].index = i, j
}

func (h *lineHeap[T, W]) Push(x any) {
	l := x.(*line[T, W])
	l.index = len(h.lines)
	h.lines = append(h.lines, l)
}

func (h *lineHeap[T, W]) Pop() any {
	n := len(h.lines) - 1
	l := h.lines[n]
	h.lines[n] = nil
	h.lines = h.lines[:n]
	return l
}
