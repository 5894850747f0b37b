package pipeline

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// maxNodes bounds the nodes and fields that merging makes, of which a small
// file can ask for any number.
const maxNodes = 100_000

// A kind says what a node is.
type kind uint8

const (
	invalid kind = iota // an error has been reported: readers pass over it
	null                // nothing, or ~
	text                // also dates and the like, as written
	integer
	float
	boolean
	list
	mapping
	reference // !reference, until references is done
)

// A node is a value of the file. Nodes are shared wherever the file has an
// alias or extends something, and are not changed once references is done: what
// walks down without remembering where it was takes as long as the file's
// author likes.
type node struct {
	kind   kind
	text   string // as written, of a scalar
	plain  bool   // without quotes, of a scalar
	items  []*node
	fields []field
	at     mark
	state  state // of a reference, or of what holds one
}

// A field is a key of a mapping and its value. Keys are in the order of the
// file, what a merge key brings in its place.
type field struct {
	key   string
	at    mark
	value *node
}

var nothing = &node{kind: null}

// field returns the value of a key, which is null where there is none.
func (n *node) field(key string) *node {
	for _, f := range n.fields {
		if f.key == key {
			return f.value
		}
	}
	return nothing
}

// has reports whether a key has a value other than null.
func (n *node) has(key string) bool { return n.field(key).kind != null }

// keyAt returns where a key stands.
func (n *node) keyAt(key string) mark {
	if i := slices.IndexFunc(n.fields, func(f field) bool { return f.key == key }); i >= 0 {
		return n.fields[i].at
	}
	return n.at
}

// String describes a node for a message.
func (n *node) String() string {
	switch n.kind {
	case null:
		return "empty"
	case text:
		return quote(n.text)
	case integer, float:
		return "the number " + n.text
	case boolean:
		return n.text + " (a boolean)"
	case list:
		return "a list"
	case mapping:
		return "a mapping"
	}
	if n.kind == reference {
		return "a !reference"
	}
	return "something else"
}

// tree turns a YAML document into nodes.
func (p *parser) tree(document *yaml.Node) *node {
	t := &grower{parser: p, grown: make(map[*yaml.Node]*node)}
	return t.node(document)
}

// A grower makes nodes, one for each YAML node, however many aliases it has.
type grower struct {
	*parser
	grown map[*yaml.Node]*node // nil while a node is being made
}

func (t *grower) node(y *yaml.Node) *node {
	at := t.mark(y.Line, y.Column)
	if y.Kind == yaml.AliasNode {
		return t.alias(y, at)
	}
	t.grown[y] = nil
	n := &node{at: at}
	switch {
	case y.Tag == "!reference":
		t.readReference(n, y)
	case !hasOwnTag(y):
		t.errorf(at, "the tag %s is not supported here: only !reference is, and !!str before a text", quote(y.ShortTag()))
	case y.Kind == yaml.ScalarNode:
		t.scalar(n, y)
	case y.Kind == yaml.SequenceNode:
		n.kind = list
		for _, item := range y.Content {
			n.items = append(n.items, t.node(item))
		}
	case y.Kind == yaml.MappingNode:
		n.kind = mapping
		t.fields(n, y)
	default:
		t.errorf(at, "a pipeline cannot hold this")
	}
	t.grown[y] = n
	return n
}

// hasOwnTag reports whether a node has no tag, or that of its kind. Any scalar is
// a text if the file says so; what YAML makes of one otherwise needs no tag.
func hasOwnTag(y *yaml.Node) bool {
	if y.Style&yaml.TaggedStyle == 0 {
		return true
	}
	own := map[yaml.Kind]string{yaml.ScalarNode: "!!str", yaml.SequenceNode: "!!seq", yaml.MappingNode: "!!map"}
	return y.ShortTag() == own[y.Kind]
}

func (t *grower) alias(y *yaml.Node, at mark) *node {
	target, met := t.grown[y.Alias]
	switch {
	case !met:
		return t.node(y.Alias)
	case target == nil:
		t.errorf(at, "*%s stands inside of what it refers to, &%s", y.Value, y.Value)
		return &node{at: at}
	}
	return target
}

func (t *grower) scalar(n *node, y *yaml.Node) {
	n.kind, n.text, n.plain = text, y.Value, y.Style == 0
	switch y.ShortTag() {
	case "!!null":
		n.kind = null
	case "!!int":
		n.kind = integer
	case "!!float":
		n.kind = float
	case "!!bool":
		n.kind = boolean
	}
	if strings.ContainsRune(n.text, 0) {
		n.kind = invalid
		t.errorf(n.at, "a text cannot hold the character NUL")
	}
}

// fields reads a mapping. The last of several equal keys counts, also
// if a merge key brings one: GitLab's YAML goes by their order.
func (t *grower) fields(n *node, y *yaml.Node) {
	m := merger{grower: t, place: make(map[string]int)}
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, ok := t.key(y.Content[i])
		if !ok {
			continue
		}
		key.value = t.node(y.Content[i+1])
		if key.key == "<<" {
			m.merge(key)
			continue
		}
		m.own(key)
	}
	n.fields = m.fields
}

func (t *grower) key(y *yaml.Node) (field, bool) {
	n := t.node(y)
	switch at := t.mark(y.Line, y.Column); n.kind {
	case text, integer, float, boolean:
		return field{key: n.text, at: at}, true
	case invalid:
		return field{}, false
	default:
		t.errorf(at, "a key should be a text, not %s", n)
		return field{}, false
	}
}
