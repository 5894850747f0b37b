package pipeline

import "slices"

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
