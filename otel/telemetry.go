package otelambit

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	"github.com/ambit-go/ambit/async"
)

// scopeName is the name of the tracer and of the meter.
const scopeName = "ambit"

// A Telemetry is an observer that makes spans and metrics. It is made by [New].
type Telemetry struct {
	settings
	tracer trace.Tracer
	meters
	names names

	mu     sync.Mutex
	open   map[*entry]struct{} // spans that have not ended
	closed bool
}

var _ async.Observer = (*Telemetry)(nil)

// New returns an observer that makes spans and metrics of what it is told of; see [async.Observe]. Any number of
// scopes may have it. The gauges are there from now on. The error is that of the meter provider.
func New(opts ...Option) (*Telemetry, error) {
	t := &Telemetry{settings: settings{tracers: otel.GetTracerProvider(), metrics: otel.GetMeterProvider()}}
	for _, opt := range opts {
		opt(&t.settings)
	}
	t.tracer = t.tracers.Tracer(scopeName)
	t.names = names{series: make(map[string]bool), known: make(map[string]string)}
	t.open = make(map[*entry]struct{})
	return t, t.meters.open(t)
}

// Shutdown ends the spans that are open, with the outcome "unfinished", and the gauges: from then on there are neither.
// Call it after async.Shutdown, and before that of the providers.
func (t *Telemetry) Shutdown(context.Context) error {
	t.mu.Lock()
	open := t.open
	t.open, t.closed = nil, true
	t.mu.Unlock()
	for e := range open {
		e.span.SetAttributes(outcomeKey.String(string(unfinished)))
		e.span.End()
	}
	return t.meters.close()
}

// Kinds are those that t is to be told of, beside starts: see [async.Observer].
func (t *Telemetry) Kinds() []async.EventKind {
	return []async.EventKind{async.EventEnd, async.EventPanic, async.EventSkipped, async.EventWaited}
}

// Observe makes of e what is to be made of it.
func (t *Telemetry) Observe(e async.Event) {
	name := t.names.of(e.Task)
	ctx := context.WithoutCancel(e.Ctx)
	switch e.Kind {
	case async.EventEnd:
		how, errorType := judge(&e)
		t.meters.ended(ctx, &e, name, how)
		t.endSpan(&e, how, errorType)
	case async.EventPanic:
		t.panics.Add(ctx, 1, named(name))
		t.panicked(&e)
	case async.EventSkipped:
		t.skipped.Add(ctx, 1, named(name))
	case async.EventWaited:
		waited(&e)
	}
}
