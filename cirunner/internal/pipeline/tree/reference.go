package tree

import (
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
	"go.yaml.in/yaml/v4"
)

// maxReferences is how deep references may refer to references.
const maxReferences = 10

// State is how far references has come with a node.
type State uint8

const (
	Unseen State = iota
	Busy         // on the way from the root to here
	Settled
)

// readReference reads !reference [job, keyword, ...].
func (t *grower) readReference(n *Node, y *yaml.Node) {
	if y.Kind != yaml.SequenceNode || len(y.Content) == 0 {
		t.Errorf(n.At, "!reference should have a list of keys, such as !reference [.setup, script]")
		return
	}
	n.Kind = reference
	for _, y := range y.Content {
		item := t.node(y)
		if item.Kind != Text && item.Kind != Integer {
			t.Errorf(item.At, "!reference should have a list of keys, not %s in it", item)
			n.Kind = Invalid
			return
		}
		n.Items = append(n.Items, item)
	}
}

// References puts what is referred to in the place of every !reference. It sees
// jobs with all that they extend, as GitLab does.
func (p *Reader) References(root *Node) {
	p.root = root
	p.settle(root, 0)
}

// settle replaces the references in n, which is itself none.
func (p *Reader) settle(n *Node, depth int) {
	if n.state != Unseen {
		return
	}
	n.state = Busy
	for i, item := range n.Items {
		n.Items[i] = p.referred(item, depth)
	}
	for i, f := range n.Fields {
		n.Fields[i].Value = p.referred(f.Value, depth)
	}
	n.state = Settled
}

// referred returns what stands in the place of n. The result holds no
// reference any more, and not itself.
func (p *Reader) referred(n *Node, depth int) *Node {
	if n.Kind != reference {
		p.settle(n, depth)
		return n
	}
	switch n.state {
	case Unseen:
		n.state = Busy
		p.targets[n] = p.follow(n, depth)
		n.state = Settled
	case Busy:
		p.Errorf(n.At, "%s leads back to itself", n.path())
		return &Node{At: n.At}
	}
	return p.targets[n]
}

// follow returns what a reference refers to. On the way there may be other
// references, which are followed to look into what they refer to.
func (p *Reader) follow(n *Node, depth int) *Node {
	failed := &Node{At: n.At}
	if depth == maxReferences {
		p.Errorf(n.At, "%s is more than %d references deep", n.path(), maxReferences)
		return failed
	}
	target := p.root
	for i, key := range n.Items {
		next, found := target.Find(key.Text)
		switch {
		case target.Kind == Invalid:
			return failed
		case !found:
			p.Errorf(key.At, "%s leads nowhere: %s has no %s%s", n.path(), place(n.Items[:i]),
				words.Quote(key.Text), p.DidYouMean(key.Text, target.keys()))
			return failed
		case next.Kind == reference:
			next = p.referred(next, depth+1)
		}
		target = next
	}
	if target.state == Busy {
		p.Errorf(n.At, "%s stands inside of what it refers to", n.path())
		return failed
	}
	p.settle(target, depth+1)
	return target
}

// Find returns the value of key in the mapping n, and whether it has one.
func (n *Node) Find(key string) (*Node, bool) {
	for _, f := range n.Fields {
		if f.Key == key {
			return f.Value, true
		}
	}
	return nil, false
}

func (n *Node) keys() []string {
	var keys []string
	for _, f := range n.Fields {
		keys = append(keys, f.Key)
	}
	return keys
}

// path returns a reference as it is written.
func (n *Node) path() string { return "!reference [" + strings.Join(texts(n.Items), ", ") + "]" }

func place(path []*Node) string {
	if len(path) == 0 {
		return "the file"
	}
	return words.Quote(strings.Join(texts(path), ", "))
}

// AsWritten returns texts as they are.
func AsWritten(nodes []*Node) []string {
	var all []string
	for _, n := range nodes {
		all = append(all, n.Text)
	}
	return all
}

// texts returns them as a message shows them.
func texts(nodes []*Node) []string {
	var all []string
	for _, n := range nodes {
		s := n.Text
		if len(s) > words.MaxQuoted {
			s = s[:words.MaxQuoted] + "…"
		}
		all = append(all, strings.ToValidUTF8(s, ""))
	}
	return all
}
