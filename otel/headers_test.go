package otelambit_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	otelambit "github.com/ambit-go/ambit/otel"
)

// The injected span is the parent of the span of a task that is started with what was extracted, also in a group, which
// has no span.
func TestHeadersCarryTheTrace(t *testing.T) {
	observed(t, func(ctx context.Context, b *backend) {
		headers := map[string]string{"own": "kept"}
		_, err := async.Start(ctx, func(ctx context.Context) error {
			otelambit.Headers{}.Inject(ctx, headers)
			return nil
		}, async.Name("enqueues")).Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, "kept", headers["own"])
		group := async.NewGroup(ctx)
		far := otelambit.Headers{}.Extract(group.Context(), headers)
		_, err = async.Start(far, func(context.Context) error { return nil }, async.Name("handles")).Wait(ctx)
		require.NoError(t, err)
		require.NoError(t, group.Stop(ctx, nil))
		sender, handler := b.span("enqueues"), b.span("handles")
		require.Equal(t, sender.SpanContext().TraceID(), handler.SpanContext().TraceID())
		require.Equal(t, sender.SpanContext().SpanID(), handler.Parent().SpanID())
		require.True(t, handler.Parent().IsRemote())
		require.Empty(t, handler.Links())
		require.Empty(t, otelambit.Headers{}.Extract(context.Background(), nil).Value("none"))
	})
}
