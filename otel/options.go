package otelambit

import (
	"context"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/ambit-go/ambit/async"
)

// An Option changes what [New] makes.
type Option func(*settings)

type settings struct {
	tracers trace.TracerProvider
	metrics metric.MeterProvider
	filter  func(e async.Event, usual bool) bool
	look    []async.LookOption
	texts   bool
}

// TracerProvider says who makes the spans. Defaults to the global one.
func TracerProvider(p trace.TracerProvider) Option { return func(s *settings) { s.tracers = p } }

// MeterProvider says who makes the metrics. Defaults to the global one.
func MeterProvider(p metric.MeterProvider) Option { return func(s *settings) { s.metrics = p } }

// Filter says which tasks have a span. f is given the event of the start, and whether the task has one
// usually. It is called by many goroutines. A nil f panics.
func Filter(f func(e async.Event, usual bool) bool) Option {
	if f == nil {
		panic("otelambit: Filter(nil): leave the option out instead")
	}
	return func(s *settings) { s.filter = f }
}

// Root has the gauges show the scope of ctx, or its root, and not that of the process.
func Root(ctx context.Context) Option {
	look := async.Of(ctx)
	return func(s *settings) { s.look = append(s.look, look) }
}

// Texts puts the texts of errors and panics into spans. They may hold anything.
func Texts() Option { return func(s *settings) { s.texts = true } }
