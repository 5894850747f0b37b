package main

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The model asks for each pair of files whether they reach each other.
func TestKnotsAreThoseOfASearchFromEveryFile(t *testing.T) {
	files := []string{"a", "b", "c", "d", "e", "f", "g"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		g := &graph{files: files, to: map[string]map[string]map[string]bool{}}
		for _, from := range files {
			g.to[from] = map[string]map[string]bool{}
			for _, to := range files {
				if from != to && random.IntN(6) == 0 {
					g.add(from, to, "used")
				}
			}
		}
		var want [][]string
		for _, f := range files {
			knot := slices.DeleteFunc(slices.Clone(files), func(other string) bool {
				return !g.reaches(f, other) || !g.reaches(other, f)
			})
			if len(knot) > 1 && knot[0] == f {
				want = append(want, knot)
			}
		}
		require.ElementsMatch(t, want, g.knots(), "%v", g.all())
	}
}

// reaches searches for a path of references; each file reaches itself.
func (g *graph) reaches(from, to string) bool {
	seen := map[string]bool{from: true}
	for next := []string{from}; len(next) > 0; next = next[1:] {
		for f := range g.to[next[0]] {
			if !seen[f] {
				seen[f] = true
				next = append(next, f)
			}
		}
	}
	return seen[to]
}
