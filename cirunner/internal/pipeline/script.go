package pipeline

// Limits on a script.
const (
	maxNesting  = 10      // lists in lists
	maxCommands = 5000    // of one script
	maxScript   = 1 << 20 // bytes of one script
)

func readScript(p *parser, d *draft, n *node) {
	d.Script = p.script("script", n)
	if len(d.Script) == 0 && !p.reportedUnder(n) {
		p.errorf(n.at, "script has no command; a job that has nothing to do can say true")
	}
}

// reportedUnder reports whether something is wrong with a list or its items.
func (p *parser) reportedUnder(n *node) bool {
	return len(n.items) > 0 || n.kind != list && (n.kind != text || n.text != "")
}

// script reads commands: a text, or a list of texts in which lists may stand,
// as aliases and references bring them in. It never returns nil for a list, so
// that an empty one stands over that of default.
func (p *parser) script(what string, n *node) []string {
	if n.kind == text && n.text == "" {
		return []string{}
	}
	if n.kind != text && n.kind != list {
		p.notACommand(what, n)
		return nil
	}
	commands, ok := p.scripts[n]
	if ok {
		return commands
	}
	f := flattener{parser: p, what: what, commands: []string{}}
	f.add(n, 0)
	p.scripts[n] = f.commands
	return f.commands
}

// A flattener puts the commands of nested lists one after the other.
type flattener struct {
	*parser
	what     string
	commands []string
	size     int
	full     bool
	looked   int
}

func (f *flattener) add(n *node, depth int) {
	f.looked++
	switch {
	case f.full:
	case f.looked > 2*maxCommands:
		f.full = true
		f.errorf(n.at, "%s has too many lists in lists", f.what)
	case n.kind == text:
		f.command(n)
	case n.kind != list:
		f.notACommand(f.what, n)
	case depth == maxNesting:
		f.errorf(n.at, "%s has lists in lists more than %d deep", f.what, maxNesting)
	default:
		for _, item := range n.items {
			f.add(item, depth+1)
		}
	}
}

func (f *flattener) command(n *node) {
	f.commands = append(f.commands, n.text)
	f.size += len(n.text)
	if len(f.commands) > maxCommands || f.size > maxScript {
		f.full = true
		f.errorf(n.at, "%s grows too long here: it may have %d commands and %d bytes", f.what, maxCommands, maxScript)
	}
}

// notACommand explains what YAML has made of a command.
func (p *parser) notACommand(what string, n *node) {
	switch n.kind {
	case invalid:
	case mapping:
		p.errorf(n.at, `%s should be commands, but YAML reads this one as a mapping, because of ": " in it: `+
			`put the whole command in quotes, or write it below a |`, what)
	case boolean, integer, float:
		p.errorf(n.at, "%s should be commands, but YAML reads this one as %s: put it in quotes", what, n)
	default:
		p.should(what, n, "a command or a list of commands")
	}
}
