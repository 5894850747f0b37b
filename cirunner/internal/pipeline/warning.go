package pipeline

import (
	"cmp"
	"fmt"
	"slices"
)

// A Warning is about something that the file says and cirunner passes over: a
// keyword, wherever it stands.
type Warning struct {
	Pos            // the first place
	Keyword string // what is passed over
	Count   int    // in how many places it stands
	Text    string // what that means, at the first place
}

// String returns a line: place, keyword, how often, and what it means.
func (w Warning) String() string {
	if w.Count == 1 {
		return fmt.Sprintf("%s: warning: %s: %s", w.Pos, w.Keyword, w.Text)
	}
	return fmt.Sprintf("%s: warning: %s (%d times, here first): %s", w.Pos, w.Keyword, w.Count, w.Text)
}

// A warned collects the places of a keyword. A keyword that several jobs inherit stands in
// one place.
type warned struct {
	first  mark
	text   string
	places map[mark]bool
}

// warn notes that something is passed over. For a strict parser it is wrong.
func (p *problems) warn(at mark, keyword, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if p.strict {
		p.errorf(at, "%s: %s", keyword, text)
		return
	}
	if p.warnings == nil {
		p.warnings = make(map[string]*warned)
	}
	w := p.warnings[keyword]
	if w == nil {
		w = &warned{first: at, text: text, places: make(map[mark]bool)}
		p.warnings[keyword] = w
	}
	w.places[at] = true
	if at.compare(w.first) < 0 {
		w.first, w.text = at, text
	}
}

// ignore warns of a keyword of GitLab that means nothing here.
func (p *problems) ignore(at mark, keyword, why string) {
	if p.strict {
		p.errorf(at, "%s is not supported: %s", keyword, why)
		return
	}
	p.warn(at, keyword, "%s", why)
}

// sortedWarnings returns the warnings in the order of the file.
func (p *problems) sortedWarnings() []Warning {
	keywords := sortedKeys(p.warnings)
	slices.SortFunc(keywords, func(a, b string) int {
		return cmp.Or(p.warnings[a].first.compare(p.warnings[b].first), cmp.Compare(a, b))
	})
	var all []Warning
	for _, k := range keywords {
		w := p.warnings[k]
		all = append(all, Warning{Pos: p.pos(w.first), Keyword: k, Count: len(w.places), Text: w.text})
	}
	return all
}
