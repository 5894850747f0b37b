package main

import (
	"cmp"
	"maps"
	"path"
	"slices"
)

// Figures are all that is measured of a house.
type figures struct {
	Packages []packageFigures `json:"packages"`
	Sum      packageFigures   `json:"sum"`     // without the packages beside
	Between  int              `json:"between"` // references from package to package
	Knots    [][]string       `json:"knots"`
	Pairs    [][2]string      `json:"pairs"`
	Laid     bool             `json:"laid"` // there is a plan, and Up is counted
	Up       []reference      `json:"up"`
	Methods  []methodSet      `json:"methods"` // of all types, the largest first

	Exported []string `json:"exported"`
	Options  []string `json:"options"`

	LongFunctions  []long  `json:"longFunctions"`
	MedianFunction float64 `json:"medianFunction"`
	LongFiles      []long  `json:"longFiles"`
	LongTests      []long  `json:"longTests"`
	LongLines      []long  `json:"longLines"`
	LongTestLines  []long  `json:"longTestLines"`

	Played      []*played    `json:"played,omitempty"`
	FailurePath *failurePath `json:"failurePath,omitempty"`
}

// packageFigures are those of a package of the house.
type packageFigures struct {
	Folder     string `json:"folder"`
	Beside     bool   `json:"beside,omitzero"` // a public package below the top: only its code is counted
	Code       int    `json:"code"`            // lines that have code, of all builds
	Sources    int    `json:"sources"`         // files of all builds
	Tests      int    `json:"tests"`
	Files      int    `json:"files"`      // of the default build
	References int    `json:"references"` // from file to file
	Pairs      int    `json:"pairs"`
	Knot       int    `json:"knot"` // files of the largest
}

// measure takes the figures of h; p is nil if nobody has laid it in layers.
func measure(h *house, p *plan) (*figures, error) {
	g := references(h)
	f := &figures{Knots: g.knots(), Pairs: g.pairs(), Methods: methods(h)}
	if p != nil {
		if err := p.check(g); err != nil {
			return nil, err
		}
		f.Laid, f.Up = true, p.up(g)
	}
	if top := h.top(); top != nil {
		f.Exported, f.Options = exported(top.Types)
	}
	f.LongFunctions, f.MedianFunction = longFunctions(h)
	if err := f.countFolders(h); err != nil {
		return nil, err
	}
	f.countStructure(g)
	return f, nil
}

// countFolders counts what stands in the folder of each package.
func (f *figures) countFolders(h *house) error {
	for _, file := range h.files {
		i := slices.IndexFunc(f.Packages, func(p packageFigures) bool { return p.Folder == file.folder() })
		if i >= 0 {
			f.Packages[i].Files++
			continue
		}
		d, err := look(h, file.folder())
		if err != nil {
			return err
		}
		f.Packages = append(f.Packages, packageFigures{Folder: file.folder(), Beside: !file.counted(),
			Code: d.code, Sources: d.sources, Tests: d.tests, Files: 1})
		if file.counted() {
			f.addLong(d)
		}
	}
	slices.SortFunc(f.Packages, func(a, b packageFigures) int { return cmp.Compare(a.Folder, b.Folder) })
	return nil
}

// countExecuted adds what scenes have executed.
func (f *figures) countExecuted(h *house, scenes map[string]*played) {
	for _, name := range slices.Sorted(maps.Keys(scenes)) {
		if name != "failure" && name != "success" {
			f.Played = append(f.Played, scenes[name])
		}
	}
	f.FailurePath = newFailurePath(h, scenes["failure"], scenes["success"])
}

func (f *figures) addLong(d folder) {
	f.LongFiles = largestFirst(append(f.LongFiles, d.longFiles...))
	f.LongTests = largestFirst(append(f.LongTests, d.longTests...))
	f.LongLines = largestFirst(append(f.LongLines, d.longLines...))
	f.LongTestLines = largestFirst(append(f.LongTestLines, d.longTestLines...))
}

// countStructure splits references, pairs and knots by package, and sums up.
// Packages do not import each other in a circle, so each pair and each knot is
// within one of them.
func (f *figures) countStructure(g *graph) {
	f.Sum.Folder = "sum"
	for i := range f.Packages {
		p := &f.Packages[i]
		if p.Beside {
			continue
		}
		for _, r := range g.all() {
			if path.Dir(r.From) == p.Folder && path.Dir(r.To) == p.Folder {
				p.References++
			}
		}
		for _, pair := range f.Pairs {
			if path.Dir(pair[0]) == p.Folder {
				p.Pairs++
			}
		}
		p.Knot = largestKnot(f.Knots, p.Folder)
		f.Sum.add(p)
	}
	f.Between = len(g.all()) - f.Sum.References
}

func (p *packageFigures) add(other *packageFigures) {
	p.Code += other.Code
	p.Sources += other.Sources
	p.Tests += other.Tests
	p.Files += other.Files
	p.References += other.References
	p.Pairs += other.Pairs
	p.Knot = max(p.Knot, other.Knot)
}

// largestKnot is the number of files in the largest knot of a folder. A file
// that is in no circle is a knot of one.
func largestKnot(knots [][]string, folder string) int {
	for _, knot := range knots {
		if path.Dir(knot[0]) == folder {
			return len(knot)
		}
	}
	return 1
}

// mostMethods is the largest number of methods that a type declares.
func (f *figures) mostMethods() (n int) {
	for _, m := range f.Methods {
		n = max(n, m.Methods)
	}
	return n
}

// mostScattered is the largest number of files in which a type's methods stand.
func (f *figures) mostScattered() (n int) {
	for _, m := range f.Methods {
		n = max(n, m.Files)
	}
	return n
}
