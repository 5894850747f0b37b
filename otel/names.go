package otelambit

import (
	"sync"

	"github.com/ambit-go/ambit/async/picture"
)

// Bounds of names.
const (
	mostNames  = 200
	otherNames = "_OTHER"
	mostKnown  = 1 << 12 // names whose series are kept; those of others are made each time
)

// names are the names of series that were seen.
type names struct {
	mu     sync.Mutex
	series map[string]bool
	known  map[string]string // series by name
}

// of returns the name of the series that name is of.
func (n *names) of(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if series, ok := n.known[name]; ok {
		return series
	}
	series := picture.Alike(name)
	if !n.series[series] {
		if len(n.series) >= mostNames {
			series = otherNames
		} else {
			n.series[series] = true
		}
	}
	if len(n.known) < mostKnown {
		n.known[name] = series
	}
	return series
}
