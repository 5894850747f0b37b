package draft

import (
	"maps"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
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

func (i inheritance) variables(all []pipeline.Variable) []pipeline.Variable {
	only, limited := i.only["variables"]
	if i.noVariables {
		return nil
	}
	if !limited {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(v pipeline.Variable) bool { return !slices.Contains(only, v.Name) })
}

func (p *Parser) inheritance(n *tree.Node) inheritance {
	in := inheritance{only: make(map[string][]string)}
	if n.Kind == tree.Null {
		return in
	}
	read := func(what string, no *bool) func(*tree.Node) {
		return func(n *tree.Node) {
			if n.Kind == tree.List {
				in.only[what] = tree.AsWritten(p.List("inherit:"+what, n))
				p.checkInherited(what, n)
				return
			}
			all, ok := p.Boolean("inherit:"+what, n)
			*no = ok && !all
		}
	}
	p.Fields("inherit", n, tree.Keys{
		"default":   read("default", &in.noDefault),
		"variables": read("variables", &in.noVariables),
	}, nil)
	return in
}

// checkInherited reports names that nothing is inherited by. Many jobs may have
// the same list.
func (p *Parser) checkInherited(what string, n *tree.Node) {
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
		for _, f := range p.file.Field("variables").Fields {
			there[f.Key] = true
		}
	}
	for _, item := range n.Items {
		advice, unsupported := UnsupportedInJobs[item.Text]
		switch {
		case there[item.Text] || item.Kind != tree.Text || what == "default" && slices.Contains(passedOverInDefault, item.Text):
		case what == "variables":
			p.Warn(item.At, "inherit:variables", "there is no variable %s at the top of the file%s",
				words.Quote(item.Text), p.DidYouMean(item.Text, slices.Sorted(maps.Keys(there))))
		case unsupported:
			p.Errorf(item.At, "inherit:default: %s is not supported: %s", item.Text, advice)
		default:
			hint := p.DidYouMean(item.Text, namesInDefault)
			if hint == "" {
				hint = "; there are " + strings.Join(namesInDefault, ", ")
			}
			p.Errorf(item.At, "inherit:default: %s cannot be in default%s", words.Quote(item.Text), hint)
		}
	}
}
