package pipeline

import (
	"slices"
	"strings"
)

// maxParents bounds the levels of extends, as in GitLab.
const maxParents = 10

// extend replaces every job that extends others, hidden ones too, with the two
// merged: mappings key by key, everything else replaced by what the job says.
// The later ones of several parents are the stronger.
func (p *parser) extend() {
	e := &extender{parser: p, index: make(map[string]int), state: make(map[string]state)}
	for i, f := range p.root.fields {
		e.index[f.key] = i
	}
	for _, f := range p.root.fields {
		if !isGlobal(f.key) {
			e.resolve(f.key)
		}
	}
}

type extender struct {
	*parser
	index map[string]int // the place of a key in the root
	state map[string]state
	stack []string // the busy ones, each extending the next
}

// resolve returns the job of a name with everything that it extends, and puts
// it into the root.
func (e *extender) resolve(name string) *node {
	f := &e.root.fields[e.index[name]]
	if e.state[name] == settled || f.value.kind != mapping {
		return f.value
	}
	e.state[name] = busy
	e.stack = append(e.stack, name)
	if parents, found := f.value.find("extends"); found {
		merged := &node{kind: mapping, at: f.value.at}
		for _, parent := range e.list("extends", parents) {
			from := e.parent(name, parent)
			if from == nil {
				e.broken[name] = true
				continue
			}
			e.broken[name] = e.broken[name] || e.broken[parent.text]
			merged = e.merged(merged, from)
		}
		own := &node{kind: mapping, at: f.value.at, fields: without(f.value.fields, "extends")}
		f.value = e.merged(merged, own)
	}
	e.stack = e.stack[:len(e.stack)-1]
	e.state[name] = settled
	return f.value
}

func (e *extender) parent(name string, parent *node) *node {
	i, found := e.index[parent.text]
	switch {
	case !found || isGlobal(parent.text):
		e.errorf(parent.at, "%s extends %s, which is not in the file%s",
			quote(name), quote(parent.text), e.didYouMean(parent.text, e.extendable()))
	case e.state[parent.text] == busy:
		cycle := e.stack[slices.Index(e.stack, parent.text):]
		e.errorf(parent.at, "extends goes in a circle: %s", chain(cycle, "extends"))
	case e.root.fields[i].value.kind != mapping:
		e.errorf(parent.at, "%s extends %s, which is not a job but %s",
			quote(name), quote(parent.text), e.root.fields[i].value)
	case len(e.stack) > maxParents:
		e.errorf(parent.at, "extends is more than %d levels deep here", maxParents)
	default:
		return e.resolve(parent.text)
	}
	return nil
}

func (e *extender) extendable() []string {
	if e.hints > maxHints {
		return nil
	}
	return slices.DeleteFunc(e.root.keys(), isGlobal)
}

// merged returns over merged into base: the keys of base in their order, then
// those that only over has. Neither is changed.
func (e *extender) merged(base, over *node) *node {
	if base == over || len(base.fields) == 0 {
		return over
	}
	n := &node{kind: mapping, at: over.at}
	if !e.spend(len(base.fields)+len(over.fields), over.at) {
		return n
	}
	index := make(map[string]int, len(over.fields))
	for i, f := range over.fields {
		index[f.key] = i
	}
	for _, f := range base.fields {
		if i, found := index[f.key]; found {
			value := over.fields[i].value
			if f.value.kind == mapping && value.kind == mapping {
				value = e.merged(f.value, value)
			}
			f = field{f.key, over.fields[i].at, value}
			delete(index, f.key)
		}
		n.fields = append(n.fields, f)
	}
	for _, f := range over.fields {
		if _, left := index[f.key]; left {
			n.fields = append(n.fields, f)
		}
	}
	return n
}

func without(fields []field, key string) []field {
	return slices.DeleteFunc(slices.Clone(fields), func(f field) bool { return f.key == key })
}

// chain returns the names of a cycle with a verb between them, the first again
// at the end, not more of them than can be read.
func chain(names []string, verb string) string {
	const maxChain = 12
	var b strings.Builder
	for i, name := range names {
		if i == maxChain {
			b.WriteString("…, which " + verb + " ")
			break
		}
		b.WriteString(quote(name) + " " + verb + " ")
	}
	return b.String() + quote(names[0])
}
