package tree

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
)

// The functions below read values of a kind. A reader reports what is wrong and says
// whether there is a value to go on with. The name of the keyword in messages.

// Should reports that a keyword has a value of the wrong kind, unless that has
// been reported.
func (p *Reader) Should(what string, n *Node, be string, args ...any) {
	if n.Kind != Invalid {
		p.Errorf(n.At, "%s should be %s, not %s", what, fmt.Sprintf(be, args...), n)
	}
}

// IsMapping reports whether n is a mapping. If not, that is a problem of what n is for.
func (p *Reader) IsMapping(what string, n *Node) bool {
	if n.Kind == Mapping {
		return true
	}
	p.Should(what, n, "a mapping")
	return false
}

// String reads a text; what YAML takes for a number counts as one.
func (p *Reader) String(what string, n *Node) (string, bool) {
	switch n.Kind {
	case Text, Integer, Float:
		return n.Text, true
	}
	p.Should(what, n, "a text")
	return "", false
}

// Boolean reads true or false, also in the words of YAML 1.1, which GitLab's
// YAML is.
func (p *Reader) Boolean(what string, n *Node) (value, ok bool) {
	if n.Kind == Boolean || n.Kind == Text && n.Plain {
		switch strings.ToLower(n.Text) {
		case "true", "yes", "on":
			return true, true
		case "false", "no", "off":
			return false, true
		}
	}
	p.Should(what, n, "true or false")
	return false, false
}

// Integer returns the number that n is, and whether it is one of from to to. If not, that is a problem of what n is
// for.
func (p *Reader) Integer(what string, n *Node, from, to int) (int, bool) {
	if n.Kind == Integer {
		if i, err := strconv.Atoi(n.Text); err == nil && i >= from && i <= to {
			return i, true
		}
	}
	p.Should(what, n, "a number from %d to %d", from, to)
	return 0, false
}

// Integers reads a number or a list of numbers.
func (p *Reader) Integers(what string, n *Node, from, to int) []int {
	var all []int
	items := []*Node{n}
	if n.Kind == List {
		items = n.Items
	}
	for _, item := range items {
		if i, ok := p.Integer(what, item, from, to); ok {
			all = append(all, i)
		}
	}
	return all
}

// MaxItems bounds a list of texts, which every job of a file may share.
const MaxItems = 1000

// List reads a text or a list of texts, and returns their nodes.
func (p *Reader) List(what string, n *Node) []*Node {
	switch n.Kind {
	case List:
		if len(n.Items) > MaxItems {
			p.Errorf(n.At, "%s has %d texts: %d are enough", what, len(n.Items), MaxItems)
			return nil
		}
		return slices.DeleteFunc(slices.Clone(n.Items), func(item *Node) bool {
			_, ok := p.String(what, item)
			return !ok
		})
	case Text, Integer, Float:
		return []*Node{n}
	}
	p.Should(what, n, "a text or a list of texts")
	return nil
}

// Texts reads a list of texts, and returns their nodes. A text by itself is none, as in GitLab.
func (p *Reader) Texts(what string, n *Node) []*Node {
	if n.Kind != List {
		p.Should(what, n, "a list of texts")
		return nil
	}
	return p.List(what, n)
}

// Choice reads one of some words.
func Choice[T ~string](p *Reader, what string, n *Node, from ...T) (T, bool) {
	if n.Kind == Text && slices.Contains(from, T(n.Text)) {
		return T(n.Text), true
	}
	var choices []string
	for _, word := range from {
		choices = append(choices, string(word))
	}
	if n.Kind != Invalid {
		p.Errorf(n.At, "%s should be %s, not %s%s", what, words.OneOf(choices), n, p.DidYouMean(n.Text, choices))
	}
	return "", false
}

// A Keys reads the keys of a mapping, each by a function of its own.
type Keys map[string]func(*Node)

// Fields reads a mapping by its keys. A key without a value is as good as none.
func (p *Reader) Fields(what string, n *Node, readers Keys, unsupported map[string]string) bool {
	if !p.IsMapping(what, n) {
		return false
	}
	for _, f := range n.Fields {
		advice, known := unsupported[f.Key]
		switch read := readers[f.Key]; {
		case known:
			p.Ignore(f.At, what+":"+f.Key, advice)
		case read == nil:
			p.Unknown(f, what, words.SortedKeys(readers))
		case f.Value.Kind != Null:
			read(f.Value)
		}
	}
	return true
}

// Unknown reports a key that is none of a place's. It says which there are when
// there is none like it.
func (p *Reader) Unknown(f Field, where string, there []string) {
	hint := p.DidYouMean(f.Key, there)
	if hint == "" {
		hint = "; there are " + strings.Join(there, ", ")
	}
	p.Errorf(f.At, "there is no keyword %s in %s%s", words.Quote(f.Key), where, hint)
}

// maxHints bounds the names that are looked for, which takes time.
const maxHints = 30

// DidYouMean returns a question about the one of some words that is most like
// s, or nothing when none is like it, or too many have been looked for.
func (p *Problems) DidYouMean(s string, names []string) string {
	p.hints++
	if p.hints > maxHints {
		return ""
	}
	return words.Like(s, names)
}
