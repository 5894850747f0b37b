package pipeline

import (
	"maps"
	"slices"
	"strings"
)

// An inheritance says what a job takes of the file's default and variables.
type inheritance struct {
	noDefault, noVariables bool
	only                   map[string][]string // by "default" and "variables"
}

func (i inheritance) defaults(key string) bool {
	only, limited := i.only["default"]
	return !i.noDefault && (!limited || slices.Contains(only, key))
}

func (i inheritance) variables(all []Variable) []Variable {
	only, limited := i.only["variables"]
	if i.noVariables {
		return nil
	}
	if !limited {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(v Variable) bool { return !slices.Contains(only, v.Name) })
}

func (p *parser) inheritance(n *node) inheritance {
	in := inheritance{only: make(map[string][]string)}
	if n.kind == null {
		return in
	}
	read := func(what string, no *bool) func(*node) {
		return func(n *node) {
			if n.kind == list {
				in.only[what] = asWritten(p.list("inherit:"+what, n))
				p.checkInherited(what, n)
				return
			}
			all, ok := p.boolean("inherit:"+what, n)
			*no = ok && !all
		}
	}
	p.fields("inherit", n, keys{
		"default":   read("default", &in.noDefault),
		"variables": read("variables", &in.noVariables),
	}, nil)
	return in
}

// checkInherited reports names that nothing is inherited by. Many jobs may have
// the same list.
func (p *parser) checkInherited(what string, n *node) {
	if p.inherited[n] {
		return
	}
	p.inherited[n] = true
	there := make(map[string]bool)
	if what == "default" {
		for _, name := range namesInDefault {
			there[name] = true
		}
	} else {
		for _, f := range p.root.field("variables").fields {
			there[f.key] = true
		}
	}
	for _, item := range n.items {
		advice, unsupported := unsupportedInJobs[item.text]
		switch {
		case there[item.text] || item.kind != text || what == "default" && ignoredInJobs[item.text] != "":
		case what == "variables":
			p.warn(item.at, "inherit:variables", "there is no variable %s at the top of the file%s",
				quote(item.text), p.didYouMean(item.text, slices.Sorted(maps.Keys(there))))
		case unsupported:
			p.errorf(item.at, "inherit:default: %s is not supported: %s", item.text, advice)
		default:
			hint := p.didYouMean(item.text, namesInDefault)
			if hint == "" {
				hint = "; there are " + strings.Join(namesInDefault, ", ")
			}
			p.errorf(item.at, "inherit:default: %s cannot be in default%s", quote(item.text), hint)
		}
	}
}
