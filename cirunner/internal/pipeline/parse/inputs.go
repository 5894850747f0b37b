package parse

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline/inputs"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
)

// readWith makes a tree of a file that may take inputs; nil if it is not YAML.
func (p *compiler) readWith(name string, data []byte, given inputs.Given) *tree.Node {
	if given.Values == nil {
		given.Values = &tree.Node{Kind: tree.Null}
	}
	header, rest := inputs.Split(data)
	if header == nil {
		for _, f := range given.Values.Fields {
			p.Errorf(f.At, "the file takes no inputs: it has no header with spec:inputs")
			break
		}
		return p.Read(name, data)
	}
	p.Open(name, data)
	n := p.Parse(header)
	if n == nil {
		return nil
	}
	values := inputs.Read(p.Reader, n, given)
	mark := func(offset int) tree.Mark { return p.MarkOf(rest, offset) }
	text := inputs.Interpolate(p.Reader, rest, values, mark, p.expandInput)
	return p.Read(name, text)
}

var variable = regexp.MustCompile(`\$\{?([A-Za-z_][A-Za-z0-9_]*)`)

// expandInput puts the variables of the run into an input. What is masked may not be put
// into a file.
func (p *compiler) expandInput(s string) (string, error) {
	for _, found := range variable.FindAllStringSubmatch(s, -1) {
		for _, v := range p.run.Over("") {
			if v.Name == found[1] && v.Masked {
				return "", fmt.Errorf("expand_vars: %s is masked", v.Name)
			}
		}
	}
	return p.run.Expand(s), nil
}

// givenInputs are the inputs of the command line, as a file would have them.
func (p *compiler) givenInputs() inputs.Given {
	if len(p.options.Inputs) == 0 {
		return inputs.Given{}
	}
	n := &tree.Node{Kind: tree.Mapping}
	for _, name := range slices.Sorted(maps.Keys(p.options.Inputs)) {
		p.Open("-input "+name, []byte(p.options.Inputs[name]))
		value := p.Parse([]byte(p.options.Inputs[name]))
		if value == nil {
			continue
		}
		n.Fields = append(n.Fields, tree.Field{Key: name, At: value.At, Value: value})
	}
	return inputs.Given{Values: n, At: n.At}
}
