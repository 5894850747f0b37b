package otelambit

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"

	"github.com/ambit-go/ambit/async"
)

// meters are the instruments that are told of each end.
type meters struct {
	duration, queueing        metric.Float64Histogram
	restarts, panics, skipped metric.Int64Counter
	gauges                    gauges
	registration              metric.Registration
}

// bounds are those of the histograms, in seconds: tasks take from less than a millisecond to hours.
var bounds = []float64{.0001, .001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600}

func (m *meters) open(t *Telemetry) error {
	meter := t.metrics.Meter(scopeName)
	var errs [6]error
	m.duration, errs[0] = meter.Float64Histogram("ambit.task.duration", metric.WithUnit("s"),
		metric.WithDescription("From the start of a task until all that it has started has ended."),
		metric.WithExplicitBucketBoundaries(bounds...))
	m.queueing, errs[1] = meter.Float64Histogram("ambit.task.queue.duration", metric.WithUnit("s"),
		metric.WithDescription("How long a task was queued before its handler began."),
		metric.WithExplicitBucketBoundaries(bounds...))
	m.restarts, errs[2] = meter.Int64Counter("ambit.task.restarts", metric.WithUnit("{run}"),
		metric.WithDescription("Runs of tasks with Restart after their first."))
	m.panics, errs[3] = meter.Int64Counter("ambit.task.panics", metric.WithUnit("{panic}"),
		metric.WithDescription("Panics of handlers."))
	m.skipped, errs[4] = meter.Int64Counter("ambit.task.skipped", metric.WithUnit("{task}"),
		metric.WithDescription("Tasks that never ran: cancelled before, or refused by their executor."))
	errs[5] = m.gauges.open(t, meter, &m.registration)
	return errors.Join(errs[:]...)
}

func (m *meters) close() error {
	if m.registration == nil {
		return nil
	}
	return m.registration.Unregister()
}

// ended notes the end e. ctx has the span of the task, of which the exemplar is made.
func (m *meters) ended(ctx context.Context, e *async.Event, name string, how outcome) {
	m.duration.Record(ctx, e.Duration.Seconds(), metric.WithAttributes(nameKey.String(name), outcomeKey.String(string(how))))
	m.queueing.Record(ctx, e.Queued.Seconds(), named(name))
}

func named(name string) metric.MeasurementOption { return metric.WithAttributes(nameKey.String(name)) }
