package tree

import "github.com/ambit-go/ambit/cirunner/internal/pipeline/words"

// A merger puts a mapping together.
type merger struct {
	*grower
	fields []Field
	place  map[string]int // in fields, by key
	merged []bool         // the field was brought by a merge key
}

// own takes a key of the mapping's own.
func (m *merger) own(key Field) {
	if i, twice := m.place[key.Key]; twice && !m.merged[i] {
		m.Warn(key.At, "a key that is given twice", "%s is on line %d already; the last one counts", words.Quote(key.Key), m.fields[i].At.Line)
	}
	m.set(key, false)
}

// merge takes what a merge key brings: of several mappings the first is the strongest.
func (m *merger) merge(key Field) {
	set := make(map[string]bool)
	for _, source := range m.sources(key) {
		if !m.spend(len(source.Fields), key.At) {
			return
		}
		for _, f := range source.Fields {
			if set[f.Key] {
				continue
			}
			set[f.Key] = true
			if i, found := m.place[f.Key]; found && !m.merged[i] && m.fields[i].Value != f.Value {
				m.Warn(key.At, "<< below a key", "it replaces %s of line %d, since it comes later; put << above the keys that are to win", words.Quote(f.Key), m.fields[i].At.Line)
			}
			m.set(f, true)
		}
	}
}

func (m *merger) set(f Field, merged bool) {
	i, found := m.place[f.Key]
	if !found {
		m.place[f.Key] = len(m.fields)
		m.fields, m.merged = append(m.fields, f), append(m.merged, merged)
		return
	}
	m.fields[i], m.merged[i] = f, merged
}

// sources returns the mappings that a merge key names, the first the strongest.
func (t *grower) sources(key Field) []*Node {
	candidates := []*Node{key.Value}
	if key.Value.Kind == List {
		candidates = key.Value.Items
	}
	var sources []*Node
	for _, c := range candidates {
		switch c.Kind {
		case Mapping:
			sources = append(sources, c)
		case Invalid:
		default:
			t.Errorf(key.At, "<< merges mappings: it should be an alias (*name) of a mapping, or a list of such, not %s", c)
		}
	}
	return sources
}

// spend takes from the budget for what merging makes.
func (p *Reader) spend(nodes int, at Mark) bool {
	had := p.Budget >= 0
	p.Budget -= nodes
	if p.Budget < 0 && had {
		p.Errorf(at, "the file grows too large here, once its aliases and extends are in place: "+
			"over %d values", maxNodes)
	}
	return p.Budget >= 0
}
