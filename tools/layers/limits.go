package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// A limit is the most that a figure of the structure may be.
type limit struct {
	name  string
	value int
}

// structure is what is limited. Sizes are not: a feature may need lines, and
// never a reference that runs up.
func structure(f *figures) []limit {
	var limits []limit
	if f.Laid {
		limits = append(limits, limit{"references that run up", len(f.Up)})
	}
	return append(limits,
		limit{"files of the largest knot", f.Sum.Knot},
		limit{"pairs of files that refer to each other", f.Sum.Pairs},
		limit{"methods of a type", f.mostMethods()},
		limit{"files in which the methods of a type stand", f.mostScattered()})
}

// readLimits reads the limits in the file name, which need not exist: lines
// with a name, a colon and a number.
func readLimits(name string) (map[string]int, error) {
	limits := map[string]int{}
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return limits, nil
	}
	for line := range bytes.Lines(text) {
		line := strings.TrimSpace(string(line))
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, _ := strings.Cut(line, ":")
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if err != nil {
			return nil, fmt.Errorf("%s: no limit in %q", name, line)
		}
		limits[key] = n
	}
	return limits, err
}

// writeLimits writes limits into the file name.
func writeLimits(name string, limits []limit) error {
	text := "# The most that each may be. make limits writes lower ones, RAISE=1 higher ones, which the commit argues.\n"
	for _, l := range limits {
		text += fmt.Sprintf("%s: %d\n", l.name, l.value)
	}
	return os.WriteFile(name, []byte(text), 0o666)
}

// compare says which figures are above their limits, and which have room.
func compare(current []limit, recorded map[string]int) (above, below []string) {
	known := map[string]bool{}
	for _, c := range current {
		known[c.name] = true
		was, ok := recorded[c.name]
		switch {
		case !ok:
			above = append(above, fmt.Sprintf("%s: %d, no limit is recorded", c.name, c.value))
		case c.value > was:
			above = append(above, fmt.Sprintf("%s: %d, the limit is %d: %d too many", c.name, c.value, was, c.value-was))
		case c.value < was:
			below = append(below, fmt.Sprintf("%s: %d, the limit is %d", c.name, c.value, was))
		}
	}
	for name := range recorded {
		if !known[name] {
			above = append(above, fmt.Sprintf("%s: there is a limit and no figure", name))
		}
	}
	return above, below
}

// exceeded is the error about figures that are above their limits.
func exceeded(above []string, name string) error {
	return fmt.Errorf("layers: %s\n%w: see %s, and layers -v for the lists",
		strings.Join(above, "\nlayers: "), errLimit, name)
}
