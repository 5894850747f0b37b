package main

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// gaps are what a look has left out, and why. They are there until a look finds
// them closed; only a new one is told, for looks are many.
type gaps map[gap]string

// A gap is a file or folder that is not looked at as it should be.
type gap struct {
	kind gapKind
	name string
}

// A gapKind is what cannot be done with it, as it is told.
type gapKind string

const (
	unread           gapKind = "cannot look into %s: %v"
	unreadThumbnails gapKind = "cannot look into %s of the thumbnails: %v"
	unwatched        gapKind = "no events for %s: %v; changes there are found later"
)

// add adds a gap if there is an error, and that is not that it is gone.
func (g gaps) add(kind gapKind, name string, err error) {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		g[gap{kind, name}] = cause(err).Error()
	}
}

// unread returns those that something may be missed by for ever.
func (g gaps) unread() []gap {
	all := slices.Collect(maps.Keys(g))
	all = slices.DeleteFunc(all, func(g gap) bool { return g.kind == unwatched })
	slices.SortFunc(all, func(a, b gap) int { return strings.Compare(a.name, b.name) })
	return all
}

// notLookedAt notes the gaps that a look has found, in place of those that it
// would have found again, and tells which are new.
func (b *book) notLookedAt(found gaps, again func(gap) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for g, why := range found {
		if b.gaps[g] != why {
			b.troubleLocked(string(g.kind), shown(g.name), why)
		}
	}
	maps.DeleteFunc(b.gaps, func(g gap, _ string) bool { return again(g) })
	maps.Copy(b.gaps, found)
}
