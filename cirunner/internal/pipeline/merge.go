package pipeline

// A merger puts a mapping together.
type merger struct {
	*grower
	fields []field
	place  map[string]int // in fields, by key
	merged []bool         // the field was brought by a merge key
}

// own takes a key of the mapping's own.
func (m *merger) own(key field) {
	if i, twice := m.place[key.key]; twice && !m.merged[i] {
		m.warn(key.at, "a key that is given twice", "%s is on line %d already; the last one counts", quote(key.key), m.fields[i].at.line)
	}
	m.set(key, false)
}

// merge takes what a merge key brings: of several mappings the first is the strongest.
func (m *merger) merge(key field) {
	set := make(map[string]bool)
	for _, source := range m.sources(key) {
		if !m.spend(len(source.fields), key.at) {
			return
		}
		for _, f := range source.fields {
			if set[f.key] {
				continue
			}
			set[f.key] = true
			if i, found := m.place[f.key]; found && !m.merged[i] && m.fields[i].value != f.value {
				m.warn(key.at, "<< below a key", "it replaces %s of line %d, since it comes later; put << above the keys that are to win", quote(f.key), m.fields[i].at.line)
			}
			m.set(f, true)
		}
	}
}

func (m *merger) set(f field, merged bool) {
	i, found := m.place[f.key]
	if !found {
		m.place[f.key] = len(m.fields)
		m.fields, m.merged = append(m.fields, f), append(m.merged, merged)
		return
	}
	m.fields[i], m.merged[i] = f, merged
}

// sources returns the mappings that a merge key names, the first the strongest.
func (t *grower) sources(key field) []*node {
	candidates := []*node{key.value}
	if key.value.kind == list {
		candidates = key.value.items
	}
	var sources []*node
	for _, c := range candidates {
		switch c.kind {
		case mapping:
			sources = append(sources, c)
		case invalid:
		default:
			t.errorf(key.at, "<< merges mappings: it should be an alias (*name) of a mapping, or a list of such, not %s", c)
		}
	}
	return sources
}

// spend takes from the budget for what merging makes.
func (p *parser) spend(nodes int, at mark) bool {
	had := p.budget >= 0
	p.budget -= nodes
	if p.budget < 0 && had {
		p.errorf(at, "the file grows too large here, once its aliases and extends are in place: "+
			"over %d values", maxNodes)
	}
	return p.budget >= 0
}
