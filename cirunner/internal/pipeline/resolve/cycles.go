package resolve

import (
	"slices"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline/draft"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
)

// cycles reports every way of needs that leads back to where it began.
func (g *grapher) cycles() {
	states := make(map[*draft.Draft]tree.State)
	var path []*draft.Draft
	var visit func(d *draft.Draft)
	visit = func(d *draft.Draft) {
		states[d] = tree.Busy
		path = append(path, d)
		for _, e := range g.edges[d] {
			switch states[e.to] {
			case tree.Unseen:
				visit(e.to)
			case tree.Busy:
				g.cycle(path[slices.Index(path, e.to):], e)
			}
		}
		path = path[:len(path)-1]
		states[d] = tree.Settled
	}
	for _, d := range g.all {
		if states[d] == tree.Unseen {
			visit(d)
		}
	}
}

func (g *grapher) cycle(path []*draft.Draft, last edge) {
	if len(path) == 1 {
		g.Errorf(last.at, "%s needs itself", words.Quote(path[0].Key))
		return
	}
	var names []string
	for _, d := range path {
		names = append(names, d.Key)
	}
	g.Errorf(last.at, "needs go in a circle: %s", words.Chain(names, "needs"))
}
