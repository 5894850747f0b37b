package otelambit_test

import (
	"context"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/ambit-go/ambit/async"
	otelambit "github.com/ambit-go/ambit/otel"
)

// A program has its own providers, which send to a collector; here the spans are kept.
func ExampleNew() {
	ctx := context.Background()
	spans := tracetest.NewSpanRecorder()
	telemetry, err := otelambit.New(otelambit.TracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))))
	if err != nil {
		panic(err)
	}
	err = async.Scope(ctx, func(ctx context.Context) error {
		_, err := async.Start(ctx, func(context.Context) error { return nil }, async.Name("fetch page 17")).Wait(ctx)
		return err
	}, async.Observe(telemetry))
	fmt.Println(err, telemetry.Shutdown(ctx))
	for _, s := range spans.Ended() {
		fmt.Println(s.Name())
	}
	// Output:
	// <nil> <nil>
	// fetch page #
}
