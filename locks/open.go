package locks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

var openers struct {
	sync.Mutex
	by map[string]func(ctx context.Context, url string) (Store, error)
}

// Register has [Open] use open for URLs of a scheme. The packages of stores do it when
// they are imported. A scheme that is taken panics, and so does a nil open.
func Register(scheme string, open func(ctx context.Context, url string) (Store, error)) {
	if open == nil {
		panic("locks: Register of " + scheme + " with nil")
	}
	openers.Lock()
	defer openers.Unlock()
	if openers.by[scheme] != nil {
		panic("locks: Register of " + scheme + ", which is taken")
	}
	if openers.by == nil {
		openers.by = map[string]func(context.Context, string) (Store, error){}
	}
	openers.by[scheme] = open
}

// Open opens a store by its URL: "sqlite:locks.db", "redis://localhost:6379/0",
// "postgres://localhost/app", "mem:". It knows the stores whose packages the program
// imports, as database/sql knows drivers. Its errors never show the URL, which may hold
// a password.
func Open(ctx context.Context, url string) (Store, error) {
	scheme, _, found := strings.Cut(url, ":")
	openers.Lock()
	open := openers.by[scheme]
	known := slices.Sorted(maps.Keys(openers.by))
	openers.Unlock()
	switch {
	case !found:
		return nil, &ValidationError{"store", "the URL has no scheme: write the path of a SQLite file as sqlite:PATH"}
	case len(known) == 0:
		return nil, &ValidationError{"store", "no store is known: import one, such as github.com/ambit-go/ambit/locks/sqlitestore"}
	case open == nil:
		return nil, &ValidationError{"store", fmt.Sprintf("the scheme is of none of the stores that this program has: %s", strings.Join(known, ", "))}
	}
	s, err := open(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("locks: store %s: %w", scheme, err)
	}
	return s, nil
}
