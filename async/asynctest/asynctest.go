// Package asynctest helps to test programs that use package async.
package asynctest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/internal/bridge"
)

// patience is how long the check at the end of a test waits for tasks to end.
// In a synctest bubble it costs no time.
const patience = 5 * time.Second

// Context returns a context with a root of its own, so that tests share no
// detached tasks, root tasks or stragglers. It is a child of t.Context. When
// the test ends, it shuts the root down and fails t if a detached task failed,
// if anything is still registered 5 s later, or if an error was lost.
//
// In a synctest bubble call it inside the bubble, with the bubble's t.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, check := Root(t.Context())
	t.Cleanup(func() {
		t.Helper()
		if err := check(); err != nil {
			t.Error(err)
		}
	})
	return ctx
}

// Root is [Context] for tests that look at the outcome themselves: check shuts the
// root down and returns what Context would fail the test with. The root's own
// context is a child of ctx.
func Root(ctx context.Context) (root context.Context, check func() error) {
	var lost lostErrors
	root = bridge.NewRoot(ctx, lost.add)
	return root, func() error {
		patient, cancel := context.WithTimeout(context.WithoutCancel(root), patience)
		defer cancel()
		if err := async.Shutdown(patient); err != nil {
			return err
		}
		return lost.all()
	}
}

// Live returns the names of what is registered at the root of ctx: top scopes,
// root tasks, detached tasks and stragglers.
func Live(ctx context.Context) []string { return bridge.Live(ctx) }

// lostErrors keeps what was reported to a root.
type lostErrors struct {
	mu   sync.Mutex
	errs []error
}

func (l *lostErrors) add(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, err)
}

func (l *lostErrors) all() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.errs...)
}
