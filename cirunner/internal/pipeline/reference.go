package pipeline

import (
	"strings"

	"go.yaml.in/yaml/v4"
)

// maxReferences is how deep references may refer to references.
const maxReferences = 10

// state is how far references has come with a node.
type state uint8

const (
	unseen state = iota
	busy         // on the way from the root to here
	settled
)

// readReference reads !reference [job, keyword, ...].
func (t *grower) readReference(n *node, y *yaml.Node) {
	if y.Kind != yaml.SequenceNode || len(y.Content) == 0 {
		t.errorf(n.at, "!reference should have a list of keys, such as !reference [.setup, script]")
		return
	}
	n.kind = reference
	for _, y := range y.Content {
		item := t.node(y)
		if item.kind != text && item.kind != integer {
			t.errorf(item.at, "!reference should have a list of keys, not %s in it", item)
			n.kind = invalid
			return
		}
		n.items = append(n.items, item)
	}
}

// references puts what is referred to in the place of every !reference. It sees
// jobs with all that they extend, as GitLab does.
func (p *parser) references() { p.settle(p.root, 0) }

// settle replaces the references in n, which is itself none.
func (p *parser) settle(n *node, depth int) {
	if n.state != unseen {
		return
	}
	n.state = busy
	for i, item := range n.items {
		n.items[i] = p.referred(item, depth)
	}
	for i, f := range n.fields {
		n.fields[i].value = p.referred(f.value, depth)
	}
	n.state = settled
}

// referred returns what stands in the place of n. The result holds no
// reference any more, and not itself.
func (p *parser) referred(n *node, depth int) *node {
	if n.kind != reference {
		p.settle(n, depth)
		return n
	}
	switch n.state {
	case unseen:
		n.state = busy
		p.targets[n] = p.follow(n, depth)
		n.state = settled
	case busy:
		p.errorf(n.at, "%s leads back to itself", n.path())
		return &node{at: n.at}
	}
	return p.targets[n]
}

// follow returns what a reference refers to. On the way there may be other
// references, which are followed to look into what they refer to.
func (p *parser) follow(n *node, depth int) *node {
	failed := &node{at: n.at}
	if depth == maxReferences {
		p.errorf(n.at, "%s is more than %d references deep", n.path(), maxReferences)
		return failed
	}
	target := p.root
	for i, key := range n.items {
		next, found := target.find(key.text)
		switch {
		case target.kind == invalid:
			return failed
		case !found:
			p.errorf(key.at, "%s leads nowhere: %s has no %s%s", n.path(), place(n.items[:i]),
				quote(key.text), p.didYouMean(key.text, target.keys()))
			return failed
		case next.kind == reference:
			next = p.referred(next, depth+1)
		}
		target = next
	}
	if target.state == busy {
		p.errorf(n.at, "%s stands inside of what it refers to", n.path())
		return failed
	}
	p.settle(target, depth+1)
	return target
}

func (n *node) find(key string) (*node, bool) {
	for _, f := range n.fields {
		if f.key == key {
			return f.value, true
		}
	}
	return nil, false
}

func (n *node) keys() []string {
	var keys []string
	for _, f := range n.fields {
		keys = append(keys, f.key)
	}
	return keys
}

// path returns a reference as it is written.
func (n *node) path() string { return "!reference [" + strings.Join(texts(n.items), ", ") + "]" }

func place(path []*node) string {
	if len(path) == 0 {
		return "the file"
	}
	return quote(strings.Join(texts(path), ", "))
}

// asWritten returns texts as they are.
func asWritten(nodes []*node) []string {
	var all []string
	for _, n := range nodes {
		all = append(all, n.text)
	}
	return all
}

// texts returns them as a message shows them.
func texts(nodes []*node) []string {
	var all []string
	for _, n := range nodes {
		s := n.text
		if len(s) > maxQuoted {
			s = s[:maxQuoted] + "…"
		}
		all = append(all, strings.ToValidUTF8(s, ""))
	}
	return all
}
