package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The functions below read values of a kind. A reader reports what is wrong and says
// whether there is a value to go on with. The name of the keyword in messages.

// should reports that a keyword has a value of the wrong kind, unless that has
// been reported.
func (p *parser) should(what string, n *node, be string, args ...any) {
	if n.kind != invalid {
		p.errorf(n.at, "%s should be %s, not %s", what, fmt.Sprintf(be, args...), n)
	}
}

func (p *parser) isMapping(what string, n *node) bool {
	if n.kind == mapping {
		return true
	}
	p.should(what, n, "a mapping")
	return false
}

// string reads a text; what YAML takes for a number counts as one.
func (p *parser) string(what string, n *node) (string, bool) {
	switch n.kind {
	case text, integer, float:
		return n.text, true
	}
	p.should(what, n, "a text")
	return "", false
}

// boolean reads true or false, also in the words of YAML 1.1, which GitLab's
// YAML is.
func (p *parser) boolean(what string, n *node) (value, ok bool) {
	if n.kind == boolean || n.kind == text {
		switch strings.ToLower(n.text) {
		case "true", "yes", "on":
			return true, true
		case "false", "no", "off":
			return false, true
		}
	}
	p.should(what, n, "true or false")
	return false, false
}

func (p *parser) integer(what string, n *node, from, to int) (int, bool) {
	if n.kind == integer {
		if i, err := strconv.Atoi(n.text); err == nil && i >= from && i <= to {
			return i, true
		}
	}
	p.should(what, n, "a number from %d to %d", from, to)
	return 0, false
}

// integers reads a number or a list of numbers.
func (p *parser) integers(what string, n *node, from, to int) []int {
	var all []int
	items := []*node{n}
	if n.kind == list {
		items = n.items
	}
	for _, item := range items {
		if i, ok := p.integer(what, item, from, to); ok {
			all = append(all, i)
		}
	}
	return all
}

// maxItems bounds a list of texts, which every job of a file may share.
const maxItems = 1000

// list reads a text or a list of texts, and returns their nodes.
func (p *parser) list(what string, n *node) []*node {
	switch n.kind {
	case list:
		if len(n.items) > maxItems {
			p.errorf(n.at, "%s has %d texts: %d are enough", what, len(n.items), maxItems)
			return nil
		}
		return slices.DeleteFunc(slices.Clone(n.items), func(item *node) bool {
			_, ok := p.string(what, item)
			return !ok
		})
	case text, integer, float:
		return []*node{n}
	}
	p.should(what, n, "a text or a list of texts")
	return nil
}

// choice reads one of some words.
func choice[T ~string](p *parser, what string, n *node, from ...T) (T, bool) {
	if n.kind == text && slices.Contains(from, T(n.text)) {
		return T(n.text), true
	}
	var words []string
	for _, word := range from {
		words = append(words, string(word))
	}
	if n.kind != invalid {
		p.errorf(n.at, "%s should be %s, not %s%s", what, oneOf(words), n, p.didYouMean(n.text, words))
	}
	return "", false
}

func oneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// A keys reads the keys of a mapping, each by a function of its own.
type keys map[string]func(*node)

// fields reads a mapping by its keys. A key without a value is as good as none.
func (p *parser) fields(what string, n *node, readers keys, unsupported map[string]string) bool {
	if !p.isMapping(what, n) {
		return false
	}
	for _, f := range n.fields {
		advice, known := unsupported[f.key]
		switch read := readers[f.key]; {
		case known:
			p.ignore(f.at, what+":"+f.key, advice)
		case read == nil:
			p.unknown(f, what, sortedKeys(readers))
		case f.value.kind != null:
			read(f.value)
		}
	}
	return true
}

// unknown reports a key that is none of a place's. It says which there are when
// there is none like it.
func (p *parser) unknown(f field, where string, there []string) {
	hint := p.didYouMean(f.key, there)
	if hint == "" {
		hint = "; there are " + strings.Join(there, ", ")
	}
	p.errorf(f.at, "there is no keyword %s in %s%s", quote(f.key), where, hint)
}

// maxHints bounds the names that are looked for, which takes time.
const maxHints = 30

// didYouMean returns a question about the one of some words that is most like
// s, or nothing when none is like it.
func (p *problems) didYouMean(s string, words []string) string {
	p.hints++
	if p.hints > maxHints || len(s) > maxQuoted {
		return ""
	}
	best, least := "", 1+(len(s)+2)/4
	for _, word := range words {
		if d := distance(s, word); d < least {
			best, least = word, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + quote(best) + "?"
}

// distance returns how many bytes have to be put in, taken out, replaced or
// swapped with the next to make a out of b: the optimal string alignment. Words
// that are too long to compare are as far from each other as they are long.
func distance(a, b string) int {
	if len(a) > maxQuoted || len(b) > maxQuoted {
		return max(len(a), len(b))
	}
	var before, last, row [maxQuoted + 1]int // of the three last prefixes of a
	for j := range len(b) {
		row[j+1] = j + 1
	}
	for i := 1; i <= len(a); i++ {
		before, last = last, row
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replaced := last[j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			row[j] = min(last[j]+1, row[j-1]+1, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
