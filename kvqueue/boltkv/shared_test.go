package boltkv

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/kvqueue"
)

// gone is a backend whose process has gone. By the time that a call has heard of it, somebody
// opens the file, which takes long.
type gone struct {
	backend
	s *Shared
}

func (b gone) Read(context.Context, ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev, error) {
	b.s.turn <- struct{}{}
	return nil, 0, ErrGone
}

// A renewal that lasted for longer than its ctx would keep a handle from noticing that its
// session is over.
func TestACallDoesNotOutlastItsContextWhileTheFileIsOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Shared{turn: make(chan struct{}, 1)}
		s.now = gone{s: s}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err := s.Read(ctx)
		assert.ErrorIs(t, err, ErrGone)
		assert.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
	})
}
