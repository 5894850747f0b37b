package draft

import "github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"

// Limits on a script.
const (
	maxNesting  = 10      // lists in lists
	maxCommands = 5000    // of one script
	maxScript   = 1 << 20 // bytes of one script
)

func readScript(p *Parser, d *Draft, n *tree.Node) {
	d.Script = p.script("script", n)
	if len(d.Script) == 0 && !p.reportedUnder(n) {
		p.Errorf(n.At, "script has no command; a job that has nothing to do can say true")
	}
}

// reportedUnder reports whether something is wrong with a list or its items.
func (p *Parser) reportedUnder(n *tree.Node) bool {
	return len(n.Items) > 0 || n.Kind != tree.List && (n.Kind != tree.Text || n.Text != "")
}

// script reads commands: a text, or a list of texts in which lists may stand,
// as aliases and references bring them in. It never returns nil for a list, so
// that an empty one stands over that of default.
func (p *Parser) script(what string, n *tree.Node) []string {
	if n.Kind == tree.Text && n.Text == "" {
		return []string{}
	}
	if n.Kind != tree.Text && n.Kind != tree.List {
		p.notACommand(what, n)
		return nil
	}
	commands, ok := p.scripts[n]
	if ok {
		return commands
	}
	f := flattener{Parser: p, what: what, commands: []string{}}
	f.add(n, 0)
	p.scripts[n] = f.commands
	return f.commands
}

// A flattener puts the commands of nested lists one after the other.
type flattener struct {
	*Parser
	what     string
	commands []string
	size     int
	full     bool
	looked   int
}

func (f *flattener) add(n *tree.Node, depth int) {
	f.looked++
	switch {
	case f.full:
	case f.looked > 2*maxCommands:
		f.full = true
		f.Errorf(n.At, "%s has too many lists in lists", f.what)
	case n.Kind == tree.Text:
		f.command(n)
	case n.Kind != tree.List:
		f.notACommand(f.what, n)
	case depth == maxNesting:
		f.Errorf(n.At, "%s has lists in lists more than %d deep", f.what, maxNesting)
	default:
		for _, item := range n.Items {
			f.add(item, depth+1)
		}
	}
}

func (f *flattener) command(n *tree.Node) {
	f.commands = append(f.commands, n.Text)
	f.size += len(n.Text)
	if ofMatrix.MatchString(n.Text) {
		f.Warn(n.At, "$[[ matrix.NAME ]] in a script", "the shell gets it as it is written: only needs:parallel:matrix has the values of the part so; a script has them as variables")
	}
	if len(f.commands) > maxCommands || f.size > maxScript {
		f.full = true
		f.Errorf(n.At, "%s grows too long here: it may have %d commands and %d bytes", f.what, maxCommands, maxScript)
	}
}

// notACommand explains what YAML has made of a command.
func (p *Parser) notACommand(what string, n *tree.Node) {
	switch n.Kind {
	case tree.Invalid:
	case tree.Mapping:
		p.Errorf(n.At, `%s should be commands, but YAML reads this one as a mapping, because of ": " in it: `+
			`put the whole command in quotes, or write it below a |`, what)
	case tree.Boolean, tree.Integer, tree.Float:
		p.Errorf(n.At, "%s should be commands, but YAML reads this one as %s: put it in quotes", what, n)
	default:
		p.Should(what, n, "a command or a list of commands")
	}
}
