package jobqueue

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func places[K comparable, T any](a, b *node[K, T]) int {
	return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.seq, b.seq))
}

// Whatever comes back, overtakes or is removed from the middle: the first of the
// set is the first of all.
func TestReadySetIsInOrder(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var s readySet[int, int]
		s.heap.less = before[int, int]
		var want, out []*node[int, int]
		for seq := range uint64(300) {
			switch op := r.IntN(6); {
			case op < 2:
				n := &node[int, int]{seq: seq, priority: r.IntN(1 + int(seed%4))}
				s.push(n)
				want = append(want, n)
			case op == 2 && len(out) > 0: // one that was taken comes back to its place
				n := out[len(out)-1]
				out = out[:len(out)-1]
				s.push(n)
				want = append(want, n)
			case op == 3 && len(want) > 0:
				i := r.IntN(len(want))
				s.remove(want[i])
				want = slices.Delete(want, i, i+1)
			case op > 3 && len(want) > 0:
				slices.SortFunc(want, places)
				require.Same(t, want[0], s.pop())
				out, want = append(out, want[0]), want[1:]
			}
			require.Equal(t, len(want), s.len())
		}
		slices.SortFunc(want, places)
		for _, n := range want {
			require.Same(t, n, s.pop())
		}
		require.Zero(t, s.len())
		require.Nil(t, s.run.last)
	}
}

// Jobs that come in order never touch the heap: they cost the same at any depth.
func TestJobsInOrderAreInTheRun(t *testing.T) {
	c := newCore(rules{})
	for i := range 100 {
		require.NoError(t, c.put(i, i, 0, 0))
	}
	assert.Equal(t, 100, c.ready.run.len)
	h := new(holder[int, int])
	n := c.take(h, 0)
	c.stop(n, 0)
	assert.Equal(t, 1, c.ready.heap.len(), "what comes back is out of order")
}

// After removals anywhere each element knows its place and none is less than the
// one above it; and a heap that was large gives its memory back.
func TestHeapWithRemovalsInTheMiddle(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 2))
		h := heap[*node[int, int]]{less: sooner[int, int]}
		var in []*node[int, int]
		for i := range 500 {
			if r.IntN(3) > 0 == (i < 250) || len(in) == 0 {
				n := &node[int, int]{at: time.Duration(r.IntN(50)), seq: uint64(i)}
				h.push(n)
				in = append(in, n)
			} else {
				j := r.IntN(len(in))
				h.remove(in[j])
				in = slices.Delete(in, j, j+1)
			}
			for j, n := range h.elems {
				if n.index != j || j > 0 && sooner(n, h.elems[(j-1)/2]) {
					t.Fatalf("seed %d: the element at %d is out of place", seed, j)
				}
			}
		}
		for _, n := range in {
			h.remove(n)
		}
		assert.LessOrEqual(t, cap(h.elems), 64)
		assert.Nil(t, h.min())
	}
}

func TestListRemovesFromAnywhere(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		var l list[int, int]
		nodes := []*node[int, int]{{}, {}, {}}
		for _, n := range nodes {
			l.push(n)
		}
		want := slices.Clone(nodes)
		for _, i := range order {
			assert.Equal(t, want, l.all())
			l.remove(nodes[i])
			want = slices.DeleteFunc(want, func(n *node[int, int]) bool { return n == nodes[i] })
		}
		assert.Zero(t, l)
	}
}

// A map keeps the size that it once had. The table is made anew when little is
// left of what was in it, and holds what it held.
func TestALargeTableGivesItsMemoryBack(t *testing.T) {
	var m table[int, int]
	m.init()
	for i := range 10 * minPeak {
		m.put(i, -i)
	}
	peak := m.peak
	for i := range 9 * minPeak {
		m.remove(i)
	}
	assert.Less(t, m.peak, peak/4)
	for i := range 10 * minPeak {
		want := 0
		if i >= 9*minPeak {
			want = -i
		}
		require.Equal(t, want, m.get(i))
	}
}
