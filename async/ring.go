package async

// A ring is a queue in a slice that is used again and again. The zero value is
// empty.
type ring[T any] struct {
	buf  []T // its length is a power of two, or 0
	head int // where the first one is
	n    int // how many there are
}

func (r *ring[T]) push(v T) {
	if r.n == len(r.buf) {
		r.grow()
	}
	r.buf[(r.head+r.n)&(len(r.buf)-1)] = v
	r.n++
}

// pop takes the first one off a ring that is not empty.
func (r *ring[T]) pop() T {
	var none T
	v := r.buf[r.head]
	r.buf[r.head] = none // so that it can be collected
	r.head = (r.head + 1) & (len(r.buf) - 1)
	r.n--
	return v
}

func (r *ring[T]) grow() {
	bigger := make([]T, max(4, 2*len(r.buf)))
	n := copy(bigger, r.buf[r.head:])
	copy(bigger[n:], r.buf[:r.head])
	r.buf, r.head = bigger, 0
}
