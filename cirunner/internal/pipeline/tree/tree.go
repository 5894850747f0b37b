// Package tree reads files into trees of nodes, within limits, and collects what is
// wrong with them. It knows YAML and what GitLab adds to it: merge keys, extends and
// !reference. No keyword of a job is known here.
//
// The YAML library is go.yaml.in/yaml/v4, the line that the YAML organisation
// maintains: its nodes and its syntax errors have lines and columns, an alias
// is a pointer and not a copy, and the depth of a document can be limited.
package tree

import (
	"slices"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
	"go.yaml.in/yaml/v4"
)

// maxNodes bounds the nodes and fields that merging makes, of which a small
// file can ask for any number.
const maxNodes = 100_000

// A Kind says what a node is.
type Kind uint8

const (
	Invalid Kind = iota // an error has been reported: readers pass over it
	Null                // nothing, or ~
	Text                // also dates and the like, as written
	Integer
	Float
	Boolean
	List
	Mapping
	reference // !reference, until references is done
)

// A Node is a value of the file. Nodes are shared wherever the file has an
// alias or extends something, and are not changed once references is done: what
// walks down without remembering where it was takes as long as the file's
// author likes.
type Node struct {
	Kind   Kind
	Text   string // as written, of a scalar
	Plain  bool   // without quotes, of a scalar
	Items  []*Node
	Fields []Field
	At     Mark
	state  State // of a reference, or of what holds one
}

// A Field is a key of a mapping and its value. Keys are in the order of the
// file, what a merge key brings in its place.
type Field struct {
	Key   string
	At    Mark
	Value *Node
}

var nothing = &Node{Kind: Null}

// Field returns the value of a key, which is null where there is none.
func (n *Node) Field(key string) *Node {
	for _, f := range n.Fields {
		if f.Key == key {
			return f.Value
		}
	}
	return nothing
}

// Has reports whether a key has a value other than null.
func (n *Node) Has(key string) bool { return n.Field(key).Kind != Null }

// KeyAt returns where a key stands.
func (n *Node) KeyAt(key string) Mark {
	if i := slices.IndexFunc(n.Fields, func(f Field) bool { return f.Key == key }); i >= 0 {
		return n.Fields[i].At
	}
	return n.At
}

// String describes a node for a message.
func (n *Node) String() string {
	switch n.Kind {
	case Null:
		return "empty"
	case Text:
		return words.Quote(n.Text)
	case Integer, Float:
		return "the number " + n.Text
	case Boolean:
		return n.Text + " (a boolean)"
	case List:
		return "a list"
	case Mapping:
		return "a mapping"
	}
	if n.Kind == reference {
		return "a !reference"
	}
	return "something else"
}

// tree turns a YAML document into nodes.
func (p *Reader) tree(document *yaml.Node) *Node {
	t := &grower{Reader: p, grown: make(map[*yaml.Node]*Node)}
	return t.node(document)
}

// A grower makes nodes, one for each YAML node, however many aliases it has.
type grower struct {
	*Reader
	grown map[*yaml.Node]*Node // nil while a node is being made
}

func (t *grower) node(y *yaml.Node) *Node {
	at := t.mark(y.Line, y.Column)
	if y.Kind == yaml.AliasNode {
		return t.alias(y, at)
	}
	t.grown[y] = nil
	n := &Node{At: at}
	switch {
	case y.Tag == "!reference":
		t.readReference(n, y)
	case !hasOwnTag(y):
		t.Errorf(at, "the tag %s is not supported here: only !reference is, and !!str before a text", words.Quote(y.ShortTag()))
	case y.Kind == yaml.ScalarNode:
		t.scalar(n, y)
	case y.Kind == yaml.SequenceNode:
		n.Kind = List
		for _, item := range y.Content {
			n.Items = append(n.Items, t.node(item))
		}
	case y.Kind == yaml.MappingNode:
		n.Kind = Mapping
		t.fields(n, y)
	default:
		t.Errorf(at, "a pipeline cannot hold this")
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

func (t *grower) alias(y *yaml.Node, at Mark) *Node {
	target, met := t.grown[y.Alias]
	switch {
	case !met:
		return t.node(y.Alias)
	case target == nil:
		t.Errorf(at, "*%s stands inside of what it refers to, &%s", y.Value, y.Value)
		return &Node{At: at}
	}
	return target
}

func (t *grower) scalar(n *Node, y *yaml.Node) {
	n.Kind, n.Text, n.Plain = Text, y.Value, y.Style == 0
	switch y.ShortTag() {
	case "!!null":
		n.Kind = Null
	case "!!int":
		n.Kind = Integer
	case "!!float":
		n.Kind = Float
	case "!!bool":
		n.Kind = Boolean
	}
	if strings.ContainsRune(n.Text, 0) {
		n.Kind = Invalid
		t.Errorf(n.At, "a text cannot hold the character NUL")
	}
}

// fields reads a mapping. The last of several equal keys counts, also
// if a merge key brings one: GitLab's YAML goes by their order.
func (t *grower) fields(n *Node, y *yaml.Node) {
	m := merger{grower: t, place: make(map[string]int)}
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, ok := t.key(y.Content[i])
		if !ok {
			continue
		}
		key.Value = t.node(y.Content[i+1])
		if key.Key == "<<" {
			m.merge(key)
			continue
		}
		m.own(key)
	}
	n.Fields = m.fields
}

func (t *grower) key(y *yaml.Node) (Field, bool) {
	n := t.node(y)
	switch at := t.mark(y.Line, y.Column); n.Kind {
	case Text, Integer, Float, Boolean:
		return Field{Key: n.Text, At: at}, true
	case Invalid:
		return Field{}, false
	default:
		t.Errorf(at, "a key should be a text, not %s", n)
		return Field{}, false
	}
}
