package pipeline

import (
	"math"
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
			p.warn(f.at, "a variable's name", "%s: bash cannot export it, so that jobs do not get it; a name has letters, digits and _", quote(f.key))
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

// value reads the value of a variable. GitLab's YAML may make another text of a value without quotes:
// 1.1 of 1.10, 493 of 0755, true of yes.
func (p *parser) value(name string, n *node) (string, bool) {
	switch n.kind {
	case text:
		if !n.plain || !yesOrNo.MatchString(n.text) {
			return n.text, true
		}
	case integer, float, boolean:
	case null:
		p.errorf(n.at, `%s has no value: write "" for an empty one`, name)
		return "", false
	default:
		p.should(name, n, "a text")
		return "", false
	}
	value, ok := asGitLabReads(n)
	if !ok {
		p.errorf(n.at, "%s: YAML does not read %s as a text: write %s", name, n.text, quote(n.text))
		return "", false
	}
	if value != n.text {
		p.warn(n.at, "a value that YAML changes", "%s: %s is read as %s; write %s if that is meant", name, n.text, value, quote(n.text))
	}
	return value, true
}

// asGitLabReads returns what YAML 1.1 and Ruby make of a number or a boolean.
func asGitLabReads(n *node) (string, bool) {
	switch strings.ToLower(n.text) {
	case "true", "yes", "on":
		return "true", true
	case "false", "no", "off":
		return "false", true
	}
	digits := strings.ReplaceAll(n.text, "_", "")
	if n.kind == integer {
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

// IsVariable reports whether a name can be that of a variable.
func IsVariable(name string) bool { return variableName.MatchString(name) }
