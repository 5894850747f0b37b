package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/ambit-go/ambit/async"
	otelambit "github.com/ambit-go/ambit/otel"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
)

// traced takes orders, works until the queue is empty, and prints the spans of that.
func traced(ctx context.Context, orders int, to io.Writer) (err error) {
	spans := tracetest.NewInMemoryExporter() // in a program of yours: otlptrace.New
	provider := sdk.NewTracerProvider(sdk.WithSyncer(spans))
	telemetry, err := otelambit.New(otelambit.TracerProvider(provider), otelambit.Filter(noServers))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, telemetry.Shutdown(ctx), provider.Shutdown(ctx)) }()
	q, err := taskqueue.New(memstore.New(), taskqueue.Propagate(otelambit.Headers{}))
	if err != nil {
		return err
	}
	err = async.Scope(ctx, func(ctx context.Context) error {
		for range orders {
			if err := order(ctx, q); err != nil {
				return err
			}
		}
		soon := taskqueue.Backoff(func(int) time.Duration { return 0 }) // or the queue is empty before
		return q.Work(ctx, taskqueue.Handlers{"receipt": receipt}, taskqueue.WorkUntilEmpty(), soon)
	}, async.Observe(telemetry))
	return errors.Join(err, write(to, spans.GetSpans()))
}

// noServers leaves out the scope that a worker of taskqueue lives in: its span would end with the program.
func noServers(e async.Event, usual bool) bool { return usual && e.Task != "worker" }

// write prints spans below one another, the earlier first.
func write(to io.Writer, spans tracetest.SpanStubs) error {
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	var errs []error
	var below func(parent string, depth int)
	below = func(parent string, depth int) {
		for _, s := range spans {
			if s.Parent.SpanID().String() != parent {
				continue
			}
			remote := ""
			if s.Parent.IsRemote() {
				remote = ", by the queue"
			}
			_, err := fmt.Fprintf(to, "%s%s: %s%s\n", strings.Repeat("  ", depth), s.Name, outcome(s), remote)
			errs = append(errs, err)
			below(s.SpanContext.SpanID().String(), depth+1)
		}
	}
	below("0000000000000000", 0)
	return errors.Join(errs...)
}

func outcome(s tracetest.SpanStub) string {
	for _, a := range s.Attributes {
		if a.Key == "error.type" {
			return "error " + a.Value.AsString()
		}
	}
	return "ok"
}
