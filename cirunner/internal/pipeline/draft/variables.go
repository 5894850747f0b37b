package draft

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
)

// maxVariables is how many variables a job may have.
const maxVariables = 500

// yesOrNo are the booleans of YAML 1.1, of which GitLab makes true and false.
var yesOrNo = regexp.MustCompile(`^(?i:yes|no|on|off)$`)

// variables reads a mapping of names to values. Those at the top of a file may
// have descriptions.
func (p *Parser) variables(n *tree.Node, global bool) []pipeline.Variable {
	if !p.IsMapping("variables", n) {
		return nil
	}
	if len(n.Fields) > maxVariables {
		p.Errorf(n.At, "variables has %d variables: %d are enough", len(n.Fields), maxVariables)
		return nil
	}
	var all []pipeline.Variable
	for _, f := range n.Fields {
		if p.warnOfName(f) {
			continue
		}
		if v, ok := p.variable(f, global); ok {
			all = append(all, v)
		}
	}
	return all
}

// warnOfName reports whether a name is none of a variable that jobs can have, and warns of it.
func (p *Parser) warnOfName(f tree.Field) bool {
	if pipeline.IsVariable(f.Key) {
		return false
	}
	p.Warn(f.At, "a variable's name", "%s: bash cannot export it, so that jobs do not get it; a name has letters, digits and _", words.Quote(f.Key))
	return true
}

func (p *Parser) variable(f tree.Field, global bool) (pipeline.Variable, bool) {
	if f.Value.Kind != tree.Mapping {
		value, ok := p.value(f.Key, f.Value)
		return pipeline.Variable{Name: f.Key, Value: value}, ok
	}
	v := pipeline.Variable{Name: f.Key}
	complete := true
	readers := tree.Keys{
		"value": func(n *tree.Node) { v.Value, complete = p.value(f.Key, n) },
		"expand": func(n *tree.Node) {
			expand, ok := p.Boolean(f.Key+":expand", n)
			v.Raw = ok && !expand
		},
	}
	if global {
		readers["description"] = func(n *tree.Node) { p.String(f.Key+":description", n) }
		readers["options"] = func(n *tree.Node) {
			options := tree.AsWritten(p.Texts(f.Key+":options", n))
			value := f.Value.Field("value")
			if value.Kind == tree.Text && !slices.Contains(options, value.Text) {
				p.Errorf(value.At, "%s is not among the options of %s", value, f.Key)
			}
		}
	}
	ok := p.Fields("the variable "+f.Key, f.Value, readers, nil)
	return v, ok && complete
}

// value reads the value of a variable. GitLab's YAML may make another text of a value without quotes:
// 1.1 of 1.10, 493 of 0755, true of yes.
func (p *Parser) value(name string, n *tree.Node) (string, bool) {
	switch n.Kind {
	case tree.Text:
		if !n.Plain || !yesOrNo.MatchString(n.Text) {
			return n.Text, true
		}
	case tree.Integer, tree.Float, tree.Boolean:
	case tree.Null: // as in GitLab
		return "", true
	default:
		p.Should(name, n, "a text")
		return "", false
	}
	value, ok := asGitLabReads(n)
	if !ok {
		p.Errorf(n.At, "%s: YAML does not read %s as a text: write %s", name, n.Text, words.Quote(n.Text))
		return "", false
	}
	if value != n.Text {
		p.Warn(n.At, "a value that YAML changes", "%s: %s is read as %s; write %s if that is meant", name, n.Text, value, words.Quote(n.Text))
	}
	return value, true
}

// asGitLabReads returns what YAML 1.1 and Ruby make of a number or a boolean.
func asGitLabReads(n *tree.Node) (string, bool) {
	switch strings.ToLower(n.Text) {
	case "true", "yes", "on":
		return "true", true
	case "false", "no", "off":
		return "false", true
	}
	digits := strings.ReplaceAll(n.Text, "_", "")
	if n.Kind == tree.Integer {
		i, err := strconv.ParseInt(digits, 0, 64)
		return strconv.FormatInt(i, 10), err == nil
	}
	x, err := strconv.ParseFloat(digits, 64)
	if size := math.Abs(x); err != nil || !(size < 1e15) || size < 1e-4 && size != 0 {
		return "", false
	}
	s := strconv.FormatFloat(x, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s, true
}
