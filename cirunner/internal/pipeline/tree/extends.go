package tree

import (
	"slices"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
)

// maxParents bounds the levels of extends, as in GitLab.
const maxParents = 10

// Extend replaces every job of a file that extends others, hidden ones too, with the two
// merged: mappings key by key, everything else replaced by what the job says.
// The later ones of several parents are the stronger. isGlobal says which keys
// are no jobs.
func (p *Reader) Extend(root *Node, isGlobal func(key string) bool) {
	e := &extender{Reader: p, root: root, isGlobal: isGlobal, index: make(map[string]int), state: make(map[string]State)}
	for i, f := range root.Fields {
		e.index[f.Key] = i
	}
	for _, f := range root.Fields {
		if !isGlobal(f.Key) {
			e.resolve(f.Key)
		}
	}
}

type extender struct {
	*Reader
	root     *Node
	isGlobal func(key string) bool
	index    map[string]int // the place of a key in the root
	state    map[string]State
	stack    []string // the busy ones, each extending the next
}

// resolve returns the job of a name with everything that it extends, and puts
// it into the root.
func (e *extender) resolve(name string) *Node {
	f := &e.root.Fields[e.index[name]]
	if e.state[name] == Settled || f.Value.Kind != Mapping {
		return f.Value
	}
	e.state[name] = Busy
	e.stack = append(e.stack, name)
	if parents, found := f.Value.Find("extends"); found {
		merged := &Node{Kind: Mapping, At: f.Value.At}
		for _, parent := range e.List("extends", parents) {
			from := e.parent(name, parent)
			if from == nil {
				e.Broken[name] = true
				continue
			}
			e.Broken[name] = e.Broken[name] || e.Broken[parent.Text]
			merged = e.Merged(merged, from)
		}
		own := &Node{Kind: Mapping, At: f.Value.At, Fields: Without(f.Value.Fields, "extends")}
		f.Value = e.Merged(merged, own)
	}
	e.stack = e.stack[:len(e.stack)-1]
	e.state[name] = Settled
	return f.Value
}

func (e *extender) parent(name string, parent *Node) *Node {
	i, found := e.index[parent.Text]
	switch {
	case !found || e.isGlobal(parent.Text):
		e.Errorf(parent.At, "%s extends %s, which is not in the file%s",
			words.Quote(name), words.Quote(parent.Text), e.DidYouMean(parent.Text, e.extendable()))
	case e.state[parent.Text] == Busy:
		cycle := e.stack[slices.Index(e.stack, parent.Text):]
		e.Errorf(parent.At, "extends goes in a circle: %s", words.Chain(cycle, "extends"))
	case e.root.Fields[i].Value.Kind != Mapping:
		e.Errorf(parent.At, "%s extends %s, which is not a job but %s",
			words.Quote(name), words.Quote(parent.Text), e.root.Fields[i].Value)
	case len(e.stack) > maxParents:
		e.Errorf(parent.At, "extends is more than %d levels deep here", maxParents)
	default:
		return e.resolve(parent.Text)
	}
	return nil
}

func (e *extender) extendable() []string {
	if e.hints > maxHints {
		return nil
	}
	return slices.DeleteFunc(e.root.keys(), e.isGlobal)
}

// Merged returns over merged into base: the keys of base in their order, then
// those that only over has. Neither is changed.
func (p *Reader) Merged(base, over *Node) *Node {
	if base == over || len(base.Fields) == 0 {
		return over
	}
	n := &Node{Kind: Mapping, At: over.At}
	if !p.spend(len(base.Fields)+len(over.Fields), over.At) {
		return n
	}
	index := make(map[string]int, len(over.Fields))
	for i, f := range over.Fields {
		index[f.Key] = i
	}
	for _, f := range base.Fields {
		if i, found := index[f.Key]; found {
			value := over.Fields[i].Value
			if f.Value.Kind == Mapping && value.Kind == Mapping {
				value = p.Merged(f.Value, value)
			}
			f = Field{f.Key, over.Fields[i].At, value}
			delete(index, f.Key)
		}
		n.Fields = append(n.Fields, f)
	}
	for _, f := range over.Fields {
		if _, left := index[f.Key]; left {
			n.Fields = append(n.Fields, f)
		}
	}
	return n
}

// Without returns a copy of fields that lacks key.
func Without(fields []Field, key string) []Field {
	return slices.DeleteFunc(slices.Clone(fields), func(f Field) bool { return f.Key == key })
}
