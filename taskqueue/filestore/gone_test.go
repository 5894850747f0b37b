package filestore

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/remote"
)

// gone is a store whose process has gone. By the time that a call has heard of it, somebody
// opens the file, which takes long.
type gone struct {
	taskqueue.Store
	s *store
}

func (g gone) Extend(context.Context, taskqueue.ExtendRequest) ([]taskqueue.ExtendResult, error) {
	g.s.turn <- struct{}{}
	return nil, remote.ErrGone
}

func TestACallDoesNotOutlastItsContextWhileTheFileIsOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{turn: make(chan struct{}, 1)}
		s.now = gone{s: s}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.Extend(ctx, taskqueue.ExtendRequest{})
		assert.ErrorIs(t, err, remote.ErrGone)
		assert.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
	})
}
