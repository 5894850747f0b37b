package main

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
)

// A plan says which file stands in which layer. Its text has a line for each
// layer, the lowest first, with a name, a colon, and files, or folders with a
// slash at their end for all files of a package; indented lines go on with the
// layer above them, and # begins a comment:
//
//	leaves: internal/slots/ ring.go
//	tree:   task.go members.go
//		cancel.go
type plan struct {
	path   string
	layers []string       // names, the lowest first
	layer  map[string]int // of each entry
}

// readPlan reads the plan in the file name.
func readPlan(name string) (*plan, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	p := &plan{path: name, layer: map[string]int{}}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if err := p.readLine(string(line)); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, number, err)
		}
	}
	return p, nil
}

func (p *plan) readLine(line string) error {
	line, _, _ = strings.Cut(line, "#")
	if strings.TrimSpace(line) == "" {
		return nil
	}
	entries := line
	if line == strings.TrimLeft(line, " \t") {
		name, after, ok := strings.Cut(line, ":")
		if !ok {
			return fmt.Errorf("no colon after the name of a layer")
		}
		p.layers, entries = append(p.layers, name), after
	}
	if len(p.layers) == 0 {
		return fmt.Errorf("files before the first layer")
	}
	for _, entry := range strings.Fields(entries) {
		if _, ok := p.layer[entry]; ok {
			return fmt.Errorf("%s stands in two layers", entry)
		}
		p.layer[entry] = len(p.layers) - 1
	}
	return nil
}

// entryOf is the entry that lays f: its own, or that of its package.
func (p *plan) entryOf(f string) (entry string, ok bool) {
	if _, ok := p.layer[f]; ok {
		return f, true
	}
	_, ok = p.layer[path.Dir(f)+"/"]
	return path.Dir(f) + "/", ok
}

// check fails unless the plan lays all files of g, and nothing else.
func (p *plan) check(g *graph) error {
	var faults []string
	used := map[string]bool{}
	for _, f := range g.files {
		entry, ok := p.entryOf(f)
		if !ok {
			faults = append(faults, f+" stands in no layer: add it to "+p.path+
				", to the lowest layer from which nothing it uses is further up")
		}
		used[entry] = true
	}
	for entry := range p.layer {
		if !used[entry] {
			faults = append(faults, entry+" is in "+p.path+" and not in the code: take it out")
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("%s", strings.Join(slices.Sorted(slices.Values(faults)), "\n"))
	}
	return nil
}

// up lists the references from a layer to one above it.
func (p *plan) up(g *graph) []reference {
	var up []reference
	for _, r := range g.all() {
		if p.layerOf(r.From) < p.layerOf(r.To) {
			up = append(up, r)
		}
	}
	return up
}

func (p *plan) layerOf(f string) int {
	entry, _ := p.entryOf(f)
	return p.layer[entry]
}
