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
func (c *compiler) readWith(name string, data []byte, given inputs.Given) *tree.Node {
	if given.Values == nil {
		given.Values = &tree.Node{Kind: tree.Null}
	}
	header, rest := inputs.Split(data)
	if header == nil {
		for _, f := range given.Values.Fields {
			c.Errorf(f.At, "the file takes no inputs: it has no header with spec:inputs")
			break
		}
		return c.Read(name, data)
	}
	c.Open(name, data)
	n := c.Parse(header)
	if n == nil {
		return nil
	}
	values := inputs.Read(c.Reader, n, given)
	mark := func(offset int) tree.Mark { return c.MarkOf(rest, offset) }
	text := inputs.Interpolate(c.Reader, rest, values, mark, c.expandInput)
	return c.Read(name, text)
}

var variable = regexp.MustCompile(`\$\{?([A-Za-z_][A-Za-z0-9_]*)`)

// expandInput puts the variables of the run into an input. A masked one may not be put
// into a file.
func (c *compiler) expandInput(s string) (string, error) {
	for _, found := range variable.FindAllStringSubmatch(s, -1) {
		for _, v := range c.run.Over("") {
			if v.Name == found[1] && v.Masked {
				return "", fmt.Errorf("expand_vars: %s is masked", v.Name)
			}
		}
	}
	return c.run.Expand(s), nil
}

// givenInputs are the inputs of the command line, as a file would have them.
func (c *compiler) givenInputs() inputs.Given {
	if len(c.options.Inputs) == 0 {
		return inputs.Given{}
	}
	n := &tree.Node{Kind: tree.Mapping}
	for _, name := range slices.Sorted(maps.Keys(c.options.Inputs)) {
		c.Open("-input "+name, []byte(c.options.Inputs[name]))
		value := c.Parse([]byte(c.options.Inputs[name]))
		if value == nil {
			continue
		}
		n.Fields = append(n.Fields, tree.Field{Key: name, At: value.At, Value: value})
	}
	return inputs.Given{Values: n, At: n.At}
}
