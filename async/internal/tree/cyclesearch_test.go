package tree

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestASearchKeepsNothing that it has seen when it is over, and no large map.
func TestASearchKeepsNothing(t *testing.T) {
	s := new(cycleSearch)
	s.begin(new(Task), new(Future), 1)
	s.edges = append(s.edges, edge{w: new(Waiter), by: new(Task), on: new(Future)})
	s.todo = append(s.todo, step{t: new(Task)})
	s.visit(new(Task))
	s.release()
	require.Nil(t, s.me)
	require.Nil(t, s.f)
	require.Empty(t, s.seen)
	require.Zero(t, s.edges[:1][0])
	require.Zero(t, s.todo[:1][0])

	s = new(cycleSearch)
	for range largeSearch + 1 {
		s.visit(new(Task))
	}
	s.begin(nil, nil, 1) // the other direction
	require.Nil(t, s.seen)
}
