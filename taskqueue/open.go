package taskqueue

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
)

var openers struct {
	sync.Mutex
	by map[string]func(ctx context.Context, url string) (Store, error)
}

// Register has [Open] use open for URLs of a scheme. The packages of stores do it
// when they are imported, each in its init. A scheme that is taken panics, and so does
// a nil open.
func Register(scheme string, open func(ctx context.Context, url string) (Store, error)) {
	openers.Lock()
	defer openers.Unlock()
	if open == nil {
		panic("taskqueue: Register of " + scheme + " with nil")
	}
	if openers.by[scheme] != nil {
		panic("taskqueue: Register of " + scheme + ", which is taken")
	}
	if openers.by == nil {
		openers.by = map[string]func(context.Context, string) (Store, error){}
	}
	openers.by[scheme] = open
}

// Open opens a store by its URL: "sqlite:tasks.db", "postgres://user@localhost/db", "redis://localhost:6379/0",
// "redis+sentinel://sentinel:26379/0?master_name=mymaster", "redis+cluster://node:6379", "mem:". It knows the stores whose packages the program imports. A URL that none of
// them knows is an [*InvalidError]; another error is that of the store. ctx is
// for the opening alone. The caller closes the store.
func Open(ctx context.Context, url string) (Store, error) {
	scheme, _, found := strings.Cut(url, ":")
	openers.Lock()
	open := openers.by[scheme]
	known := slices.Sorted(maps.Keys(openers.by))
	openers.Unlock()
	switch {
	case !found:
		return nil, invalid("store", "%q has no scheme: write it as sqlite:%s", url, url)
	case open == nil && len(known) == 0:
		return nil, invalid("store", "no store is known: import one, such as github.com/ambit-go/ambit/taskqueue/sqlstore")
	case open == nil:
		return nil, invalid("store", "%q is of none of the stores that this program has, which are %s: import the package of the one that is meant", scheme, strings.Join(known, ", "))
	}
	s, err := open(ctx, url)
	if err != nil {
		return nil, about(err, "store", scheme)
	}
	return s, nil
}

// An Auditor is a store that can check itself: whether each task is in exactly one
// state, whether it can be found there and nowhere else, and whether anything is left
// over. All stores of this module are. Nobody else should use the queue meanwhile.
type Auditor interface {
	// Audit returns what is wrong, a sentence each.
	Audit(ctx context.Context, queue string) (faults []string, err error)
}
