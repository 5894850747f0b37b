package service_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/service"
)

// A status changes nothing but the status: text, matches, and whether an error says that a service was told to stop.
func TestAStatusChangesNothingElse(t *testing.T) {
	err := service.WithStatus(errPlanted, 7)
	require.EqualError(t, err, "planted")
	require.ErrorIs(t, err, errPlanted)
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		time.AfterFunc(time.Second, func() { stop(errStop) })
		require.NoError(t, service.Run(ctx, []service.Service{{Run: func(ctx context.Context) error {
			<-ctx.Done()
			return service.WithStatus(http.ErrServerClosed, 7)
		}}, {Run: func(ctx context.Context) error { return service.WithStatus(await(ctx), 7) }}}))
	})
}
