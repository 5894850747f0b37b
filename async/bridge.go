package async

import (
	"context"

	"github.com/ambit-go/ambit/internal/bridge"
)

// This file serves package bridge with what takes the types of users.

func init() {
	bridge.Reject = rejectAccepted
	bridge.OpenTop = openTop
}

func rejectAccepted(of any, err error) {
	t := &of.(interface{ made(op string) *future }).made("Reject").t
	if d := t.more.delivery; d != nil && d.decide() {
		reject(t, err)
	}
}

// openTop opens the top of a root. It is called before anything else is done with
// the root.
func openTop(ctx context.Context) (context.Context, func(context.Context) error) {
	g := NewGroup(ctx)
	g.f.t.owner.home.top = &g.f.t
	return g.Context(), g.Wait
}
