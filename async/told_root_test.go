package async_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/ambit-go/ambit/internal/bridge"
)

// toldRoot records what a root of its own is told.
type toldRoot struct {
	mu   sync.Mutex
	lost []error
	said []string
}

func (r *toldRoot) all() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, e := range r.lost {
		fmt.Fprintf(&b, "LOST %v\n", e)
	}
	for _, s := range r.said {
		fmt.Fprintf(&b, "SAID %s\n", s)
	}
	return b.String()
}

func (r *toldRoot) count(text string) int { return strings.Count(r.all(), text) }

// withToldRoot runs f in a bubble, with a root that records.
func withToldRoot(t *testing.T, f func(t *testing.T, ctx context.Context, r *toldRoot)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := new(toldRoot)
		ctx := bridge.NewRoot(context.Background(),
			func(err error) { r.mu.Lock(); defer r.mu.Unlock(); r.lost = append(r.lost, err) },
			func(s string) { r.mu.Lock(); defer r.mu.Unlock(); r.said = append(r.said, s) })
		f(t, ctx, r)
	})
}

var (
	errFirst  = errors.New("failure A")
	errSecond = errors.New("failure B")
)

// onStop waits until ctx is done and returns a text around its error.
func onStop(text string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		<-ctx.Done()
		return fmt.Errorf("%s: %w", text, ctx.Err())
	}
}
