package scheduler

// deadlines is a heap of nodes by deadline, then by number.
type deadlines []*node

func (h deadlines) Len() int { return len(h) }
func (h deadlines) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].seq < h[j].seq
}
func (h deadlines) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *deadlines) Push(x any) {
	n := x.(*node)
	n.index = len(*h)
	*h = append(*h, n)
}
func (h *deadlines) Pop() any {
	last := len(*h) - 1
	n := (*h)[last]
	(*h)[last] = nil
	if *h = (*h)[:last]; cap(*h) > chunkSize && last < cap(*h)/4 {
		*h = append(make(deadlines, 0, cap(*h)/2), *h...) // most of it was cancelled
	}
	return n
}
