package otelambit

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
)

// Headers carries traces in the headers of messages, such as the tasks of package taskqueue:
//
//	q, err := taskqueue.New(store, taskqueue.Propagate(otelambit.Headers{}))
//
// The span of the ctx of Enqueue is then the parent of the spans in the handler, in whatever process that runs.
type Headers struct {
	// Propagator writes and reads the headers. Nil: as W3C Trace Context says.
	Propagator propagation.TextMapPropagator
}

// Inject adds the trace of ctx to headers, which must not be nil.
func (h Headers) Inject(ctx context.Context, headers map[string]string) {
	h.propagator().Inject(ctx, propagation.MapCarrier(headers))
}

// Extract returns ctx with the trace in headers, if there is one.
func (h Headers) Extract(ctx context.Context, headers map[string]string) context.Context {
	return h.propagator().Extract(ctx, propagation.MapCarrier(headers))
}

func (h Headers) propagator() propagation.TextMapPropagator {
	if h.Propagator == nil {
		return propagation.TraceContext{}
	}
	return h.Propagator
}
