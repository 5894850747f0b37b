package rings

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// graph makes one of needs: {by, alternatives...}.
func graph(needs ...[]int32) *Graph {
	g := new(Graph)
	for _, n := range needs {
		g.Need(n[0], n[1:]...)
	}
	return g
}

func stuckIn(g *Graph, nodes int32) (all []int32) {
	for n := range nodes {
		if g.IsStuck(n) {
			all = append(all, n)
		}
	}
	return all
}

func TestWhatIsStuck(t *testing.T) {
	for name, c := range map[string]struct {
		needs [][]int32
		stuck []int32
		rings string // the nodes of each
	}{
		"nothing":                      {nil, nil, "[]"},
		"a chain":                      {[][]int32{{0, 1}, {1, 2}}, nil, "[]"},
		"itself":                       {[][]int32{{0, 0}}, []int32{0}, "[[0]]"},
		"two":                          {[][]int32{{0, 1}, {1, 0}}, []int32{0, 1}, "[[0 1]]"},
		"a way into a ring":            {[][]int32{{0, 1}, {1, 2}, {2, 1}}, []int32{0, 1, 2}, "[[1 2]]"},
		"another need that is met":     {[][]int32{{0, 1}, {1, 0}, {0, 3}}, []int32{0, 1}, "[[0 1]]"},
		"an alternative that is free":  {[][]int32{{0, 1, 2}, {1, 0}}, nil, "[]"},
		"no alternative that is free":  {[][]int32{{0, 1, 2}, {1, 0}, {2, 0}}, []int32{0, 1, 2}, "[[0 1 2]]"},
		"an alternative that is freed": {[][]int32{{0, 1, 2}, {1, 0}, {2, 3}, {3, 4}}, nil, "[]"},
		"two rings":                    {[][]int32{{0, 1}, {1, 0}, {2, 3}, {3, 2}, {4, 0, 2}}, []int32{0, 1, 2, 3, 4}, "[[0 1] [2 3]]"},
		"a need without alternatives":  {[][]int32{{0}}, nil, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			g := graph(c.needs...)
			require.Equal(t, len(c.stuck), g.Stuck())
			require.Equal(t, c.stuck, stuckIn(g, 5))
			var rings [][]int32
			for _, r := range g.Rings() {
				rings = append(rings, r.Nodes)
				checkRound(t, g, r)
			}
			require.Equal(t, c.rings, fmt.Sprint(rings))
		})
	}
}

// checkRound checks that the steps of r lead from its first node from one to the next back to it.
func checkRound(t *testing.T, g *Graph, r Ring) {
	at := r.Nodes[0]
	for _, s := range r.Steps {
		require.Equal(t, at, g.By(s.Need))
		require.Contains(t, g.Alternatives(s.Need), s.On)
		require.False(t, g.IsMet(s.Need))
		at = s.On
	}
	require.Equal(t, r.Nodes[0], at)
	require.NotEmpty(t, r.Steps)
}

// A need that was met after the first answer counts in the next.
func TestANeedThatIsMetLaterFrees(t *testing.T) {
	g := graph([]int32{0, 1}, []int32{1, 2}, []int32{2, 0}, []int32{3, 0})
	require.Equal(t, 4, g.Stuck())
	g.Meet(1)
	require.Equal(t, 0, g.Stuck())
	require.Empty(t, g.Rings())
}

// naive is the same by trying until nothing changes.
func naive(needs [][]int32, nodes int) []int32 {
	stuck := make([]bool, nodes)
	for i := range stuck {
		stuck[i] = true
	}
	for changed := true; changed; {
		changed = false
		for n := range stuck {
			can := true
			for _, need := range needs {
				if int(need[0]) != n || len(need) == 1 {
					continue
				}
				all := true
				for _, a := range need[1:] {
					all = all && stuck[a]
				}
				can = can && !all
			}
			if stuck[n] && can {
				stuck[n], changed = false, true
			}
		}
	}
	var all []int32
	for n, is := range stuck {
		if is {
			all = append(all, int32(n))
		}
	}
	return all
}

func check(t *testing.T, needs [][]int32, nodes int) {
	g := graph(needs...)
	want := naive(needs, nodes)
	require.Equal(t, len(want), g.Stuck(), "%v", needs)
	require.Equal(t, want, stuckIn(g, int32(nodes)), "%v", needs)
	rings := g.Rings()
	require.Equal(t, len(want) > 0, len(rings) > 0, "what is stuck is held up by a ring: %v", needs)
	for _, r := range rings {
		checkRound(t, g, r)
	}
}

func TestStuckIsWhatANaiveSearchFinds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3_000 {
		nodes := 1 + rng.IntN(8)
		var needs [][]int32
		for range rng.IntN(2 * nodes) {
			need := []int32{int32(rng.IntN(nodes))}
			for range rng.IntN(4) {
				need = append(need, int32(rng.IntN(nodes)))
			}
			needs = append(needs, need)
		}
		check(t, needs, nodes)
	}
}

func FuzzStuck(f *testing.F) {
	f.Add([]byte{4, 2, 0, 1, 2, 1, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 || len(data) > 200 {
			return
		}
		nodes := 1 + int(data[0])%16
		var needs [][]int32
		for data = data[1:]; len(data) > 1; {
			n := 1 + int(data[0])%4
			var need []int32
			for _, b := range data[1:min(len(data), n+1)] {
				need = append(need, int32(int(b)%nodes))
			}
			needs, data = append(needs, need), data[min(len(data), n+1):]
		}
		check(t, needs, nodes)
	})
}

// A chain of 100,000 waits is no deeper than the stack of a goroutine may be, and rings in it are found.
func TestALongChain(t *testing.T) {
	const n = 100_000
	g := new(Graph)
	for i := range int32(n) {
		g.Need(i, (i+1)%n)
	}
	require.Equal(t, n, g.Stuck())
	require.Len(t, g.Rings(), 1)
}
