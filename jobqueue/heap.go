package jobqueue

// An indexed is an element that remembers where it is in its heap.
type indexed interface {
	comparable
	heapIndex() *int
}

func (n *node[K, T]) heapIndex() *int { return &n.index }

// A heap is a binary heap from the middle of which elements can be removed. The
// one of package container/heap makes an interface value of every element.
type heap[E indexed] struct {
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

// remove removes e. The last element takes its place and moves to where it
// belongs.
func (h *heap[E]) remove(e E) {
	i, last := *e.heapIndex(), len(h.elems)-1
	moved := h.elems[last]
	var none E
	h.elems[last] = none // the array keeps no pointer to it
	h.elems = h.elems[:last]
	h.shrink()
	if moved != e {
		h.set(i, moved)
		h.up(h.down(i))
	}
}

// shrink gives memory back when less than a quarter of it is used.
func (h *heap[E]) shrink() {
	if cap(h.elems) > 64 && len(h.elems) < cap(h.elems)/4 {
		h.elems = append(make([]E, 0, cap(h.elems)/2), h.elems...)
	}
}

func (h *heap[E]) set(i int, e E) {
	h.elems[i] = e
	*e.heapIndex() = i
}

// up moves the element at i up until the one above it is not greater.
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

// down moves the element at i down until neither of the two below it is less. It
// returns the index where the element is then.
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
