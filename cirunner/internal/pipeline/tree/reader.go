package tree

import "slices"

// A Reader reads files into trees of nodes, and collects what is wrong with them.
type Reader struct {
	Problems
	reading int             // the place in files of the one that becomes nodes
	Budget  int             // of nodes that merging may still make
	root    *Node           // what references refer to
	targets map[*Node]*Node // of the references
	Broken  map[string]bool // jobs that extend what they cannot
}

// NewReader returns a reader. For a strict one, what is passed over is wrong.
func NewReader(strict bool) *Reader {
	return &Reader{Problems: Problems{strict: strict}, Budget: maxNodes,
		targets: make(map[*Node]*Node), Broken: make(map[string]bool)}
}

// Sibling returns a reader that knows the files of another, and none of its problems.
func (p *Reader) Sibling() *Reader {
	r := NewReader(p.strict)
	r.files = slices.Clone(p.files)
	return r
}
