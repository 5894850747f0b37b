package pipeline

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxVariables is how many variables a job may have.
const maxVariables = 500

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// yesOrNo are the booleans of YAML 1.1, of which GitLab makes true and false.
var yesOrNo = regexp.MustCompile(`^(?i:yes|no|on|off)$`)

// variables reads a mapping of names to values. Those at the top of a file may
// have descriptions.
func (p *parser) variables(n *node, global bool) []Variable {
	if !p.isMapping("variables", n) {
		return nil
	}
	if len(n.fields) > maxVariables {
		p.errorf(n.at, "variables has %d variables: %d are enough", len(n.fields), maxVariables)
		return nil
	}
	var all []Variable
	for _, f := range n.fields {
		if !variableName.MatchString(f.key) {
			p.errorf(f.at, "%s cannot be the name of a variable: it should have letters, digits and _, and begin with no digit", quote(f.key))
			continue
		}
		if v, ok := p.variable(f, global); ok {
			all = append(all, v)
		}
	}
	return all
}

func (p *parser) variable(f field, global bool) (Variable, bool) {
	if f.value.kind != mapping {
		value, ok := p.value(f.key, f.value)
		return Variable{Name: f.key, Value: value}, ok
	}
	v := Variable{Name: f.key}
	complete := true
	readers := keys{
		"value": func(n *node) { v.Value, complete = p.value(f.key, n) },
		"expand": func(n *node) {
			expand, ok := p.boolean(f.key+":expand", n)
			v.Raw = ok && !expand
		},
	}
	if global {
		readers["description"] = func(n *node) { p.string(f.key+":description", n) }
		readers["options"] = func(n *node) {
			options := asWritten(p.list(f.key+":options", n))
			value := f.value.field("value")
			if value.kind == text && !slices.Contains(options, value.text) {
				p.errorf(value.at, "%s is not among the options of %s", value, f.key)
			}
		}
	}
	ok := p.fields("the variable "+f.key, f.value, readers, nil)
	return v, ok && complete
}

// value reads the value of a variable. A number must be one that all parsers of
// YAML write in the same way: GitLab's makes 1.1 of 1.10, and 493 of 0755.
func (p *parser) value(name string, n *node) (string, bool) {
	switch n.kind {
	case text:
		if !n.plain || !yesOrNo.MatchString(n.text) {
			return n.text, true
		}
	case integer:
		if i, err := strconv.ParseInt(n.text, 10, 64); err == nil && strconv.FormatInt(i, 10) == n.text {
			return n.text, true
		}
	case float:
		if x, err := strconv.ParseFloat(n.text, 64); err == nil && strconv.FormatFloat(x, 'f', -1, 64) == n.text {
			return n.text, true
		}
	case boolean:
		if n.text == "true" || n.text == "false" {
			return n.text, true
		}
	case null:
		p.errorf(n.at, `%s has no value: write "" for an empty one`, name)
		return "", false
	default:
		p.should(name, n, "a text")
		return "", false
	}
	p.errorf(n.at, "%s: YAML does not read %s as a text: write %s", name, n.text, quote(n.text))
	return "", false
}

// References returns variables as package vars resolves them: what is raw has no
// references.
func References(all []Variable) map[string]string {
	m := make(map[string]string, len(all))
	for _, v := range all {
		value := v.Value
		if v.Raw {
			value = strings.ReplaceAll(value, "$", "$$")
		}
		m[v.Name] = value
	}
	return m
}

// join returns the variables of both, in their order, each once: in the place
// of the first and with the value of the second.
func join(first, second []Variable) []Variable {
	if len(second) == 0 {
		return first
	}
	joined := slices.Clone(first)
	index := make(map[string]int, len(joined))
	for i, v := range joined {
		index[v.Name] = i
	}
	for _, v := range second {
		if i, found := index[v.Name]; found {
			joined[i] = v
			continue
		}
		index[v.Name] = len(joined)
		joined = append(joined, v)
	}
	return joined
}
