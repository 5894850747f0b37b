package tree

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
)

// A warned collects the places of a keyword. A keyword that several jobs inherit stands in
// one place.
type warned struct {
	first  Mark
	text   string
	places map[Mark]bool
}

// Quietly calls a reader of what is passed over: what is wrong there is reported, and nothing else is.
func (p *Problems) Quietly(read func()) {
	p.quiet++
	defer func() { p.quiet-- }()
	read()
}

// Warn notes that something is passed over. For a strict parser it is wrong.
func (p *Problems) Warn(at Mark, keyword, format string, args ...any) {
	if p.quiet > 0 {
		return
	}
	text := fmt.Sprintf(format, args...)
	if p.strict {
		p.Errorf(at, "%s: %s", keyword, text)
		return
	}
	if p.warnings == nil {
		p.warnings = make(map[string]*warned)
	}
	w := p.warnings[keyword]
	if w == nil {
		w = &warned{first: at, text: text, places: make(map[Mark]bool)}
		p.warnings[keyword] = w
	}
	w.places[at] = true
	if at.Compare(w.first) < 0 {
		w.first, w.text = at, text
	}
}

// Ignore warns of a keyword of GitLab that means nothing here.
func (p *Problems) Ignore(at Mark, keyword, why string) {
	if p.strict && p.quiet == 0 {
		p.Errorf(at, "%s is not supported: %s", keyword, why)
		return
	}
	p.Warn(at, keyword, "%s", why)
}

// SortedWarnings returns the warnings in the order of the file.
func (p *Problems) SortedWarnings() []pipeline.Warning {
	keywords, compare := words.SortedKeys(p.warnings), p.order()
	slices.SortFunc(keywords, func(a, b string) int {
		return cmp.Or(compare(p.warnings[a].first, p.warnings[b].first), cmp.Compare(a, b))
	})
	var all []pipeline.Warning
	for _, k := range keywords {
		w := p.warnings[k]
		all = append(all, pipeline.Warning{Pos: p.Pos(w.first), Keyword: k, Count: len(w.places), Text: w.text})
	}
	return all
}
