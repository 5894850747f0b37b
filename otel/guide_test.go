package otelambit_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	otelambit "github.com/ambit-go/ambit/otel"
)

// The code of docs/observability.md stands here.
func guide(ctx context.Context, serve func(context.Context) error) error {
	telemetry, err := otelambit.New() // the global providers
	if err != nil {
		return err
	}
	err = async.Scope(ctx, serve, async.Observe(telemetry))
	return err
}

func TestTheGuide(t *testing.T) {
	called := false
	require.NoError(t, guide(t.Context(), func(context.Context) error { called = true; return nil }))
	require.True(t, called)
}
