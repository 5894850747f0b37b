// Package inputs reads the header of a file that takes inputs, checks the values that it is
// given, and puts them into the text below, as GitLab does: before that is YAML.
package inputs

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
)

// The types of inputs.
const (
	ofText    = "string"
	ofNumber  = "number"
	ofBoolean = "boolean"
	ofArray   = "array"
)

// An input is what the header says of one.
type input struct {
	kind     string
	standard *tree.Node // nil for one that must be given
	options  []*tree.Node
	regex    *regexp.Regexp
}

var (
	separator = regexp.MustCompile(`(?m)^---(?:[ \t].*)?\r?$`)
	spec      = regexp.MustCompile(`(?m)^spec[ \t]*:`)
)

// Split returns the header of a file and the rest of it, in the lines that it has in the
// file. The header is nil if there is none.
func Split(data []byte) (header, rest []byte) {
	for _, at := range separator.FindAllIndex(data, -1) {
		if !spec.Match(data[:at[0]]) {
			continue // of the first document itself
		}
		lines := bytes.Count(data[:at[0]], []byte("\n"))
		return data[:at[0]], append(bytes.Repeat([]byte("\n"), lines), data[at[0]:]...)
	}
	return nil, data
}

// Given are the values that a file is given: a mapping, or a node that is null for none.
type Given struct {
	Values *tree.Node
	At     tree.Mark // of what gives them
}

// Read reads a header, and returns the value of each input as text to put into the file.
// r reads the file; expand puts variables into a text.
func Read(r *tree.Reader, header *tree.Node, given Given) map[string]*tree.Node {
	declared := map[string]input{}
	ok := r.Fields("the header", header, tree.Keys{
		"spec": func(n *tree.Node) {
			r.Fields("spec", n, tree.Keys{
				"inputs":      func(n *tree.Node) { readInputs(r, n, declared) },
				"description": func(n *tree.Node) { r.String("spec:description", n) },
			}, nil)
		},
	}, nil)
	if !ok {
		return nil
	}
	values := map[string]*tree.Node{}
	for name, in := range declared {
		value := in.standard
		if own, found := given.Values.Find(name); found {
			in.check(r, name, own)
			value = own
		}
		if value == nil {
			r.Errorf(given.At, "the input %s is missing: the file has no default for it", name)
			value = &tree.Node{Kind: tree.Text}
		}
		values[name] = value
	}
	for _, f := range given.Values.Fields {
		if _, known := declared[f.Key]; !known {
			r.Errorf(f.At, "the file takes no input %s%s", words.Quote(f.Key), r.DidYouMean(f.Key, words.SortedKeys(declared)))
		}
	}
	return values
}

func readInputs(r *tree.Reader, n *tree.Node, all map[string]input) {
	if !r.IsMapping("spec:inputs", n) {
		return
	}
	for _, f := range n.Fields {
		in := input{kind: ofText}
		what := "spec:inputs:" + f.Key
		if f.Value.Kind == tree.Null {
			all[f.Key] = in
			continue
		}
		r.Fields(what, f.Value, tree.Keys{
			"type": func(n *tree.Node) {
				if kind, ok := tree.Choice(r, what+":type", n, ofText, ofNumber, ofBoolean, ofArray); ok {
					in.kind = kind
				}
			},
			"default":     func(n *tree.Node) { in.standard = n },
			"description": func(n *tree.Node) { r.String(what+":description", n) },
			"options":     func(n *tree.Node) { in.options = n.Items },
			"regex": func(n *tree.Node) {
				var err error
				if in.regex, err = regexp.Compile(strings.Trim(n.Text, "/")); err != nil {
					r.Errorf(n.At, "%s:regex: %v", what, err)
				}
			},
		}, nil)
		if in.standard != nil {
			in.check(r, f.Key, in.standard)
		}
		all[f.Key] = in
	}
}

// check reports a value that is not one of the input's.
func (in input) check(r *tree.Reader, name string, n *tree.Node) {
	right := map[string][]tree.Kind{
		ofText: {tree.Text, tree.Integer, tree.Float}, ofNumber: {tree.Integer, tree.Float}, ofBoolean: {tree.Boolean}, ofArray: {tree.List},
	}
	same := func(option *tree.Node) bool { return option.Text == n.Text }
	switch {
	case !slices.Contains(right[in.kind], n.Kind):
		r.Should("the input "+name, n, "of the type %s", in.kind)
	case len(in.options) > 0 && !slices.ContainsFunc(in.options, same):
		r.Errorf(n.At, "the input %s should be one of its options, %s, not %s", name, words.OneOf(tree.AsWritten(in.options)), n)
	case in.regex != nil && !in.regex.MatchString(n.Text):
		r.Errorf(n.At, "the input %s should match /%s/, not be %s", name, in.regex, n)
	}
}
