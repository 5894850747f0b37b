package otelambit_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/clitest"
	otelambit "github.com/ambit-go/ambit/otel"
)

func TestMain(m *testing.M) { os.Exit(clitest.LeakChecked(m).Run()) }

var errPlanted = errors.New("planted")

// A backend is what spans and metrics go to.
type backend struct {
	t     *testing.T
	spans *tracetest.SpanRecorder
	read  *sdkmetric.ManualReader
	*otelambit.Telemetry
}

// observed runs body in a bubble, in a scope that is observed.
func observed(t *testing.T, body func(ctx context.Context, b *backend), opts ...otelambit.Option) {
	asynctest.Run(t, func(t *testing.T, ctx context.Context) {
		b := &backend{t: t, spans: tracetest.NewSpanRecorder(), read: sdkmetric.NewManualReader()}
		opts := append([]otelambit.Option{
			otelambit.TracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(b.spans))),
			otelambit.MeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(b.read))),
			otelambit.Root(ctx),
		}, opts...)
		var err error
		b.Telemetry, err = otelambit.New(opts...)
		require.NoError(t, err)
		_ = async.Scope(ctx, func(ctx context.Context) error { body(ctx, b); return nil }, async.Observe(b))
		require.NoError(t, b.Shutdown(ctx))
		require.Len(t, b.spans.Ended(), len(b.spans.Started()), "no span is open")
	})
}

// span returns the span of that name that has ended.
func (b *backend) span(name string) sdktrace.ReadOnlySpan {
	b.t.Helper()
	for _, s := range b.spans.Ended() {
		if s.Name() == name {
			return s
		}
	}
	require.Fail(b.t, "no span has ended", name)
	return nil
}

func (b *backend) has(name string) bool {
	for _, s := range b.spans.Started() {
		if s.Name() == name {
			return true
		}
	}
	return false
}

// attr returns the value of an attribute as text, "" if there is none.
func attr(attrs []attribute.KeyValue, key string) string {
	for _, a := range attrs {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

// metrics reads all metrics, by name.
func (b *backend) metrics() map[string]metricdata.Aggregation {
	b.t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(b.t, b.read.Collect(context.Background(), &all))
	by := make(map[string]metricdata.Aggregation)
	for _, scope := range all.ScopeMetrics {
		require.Equal(b.t, "ambit", scope.Scope.Name)
		for _, m := range scope.Metrics {
			by[m.Name] = m.Data
		}
	}
	return by
}

// ints returns the points of a gauge or counter by the value of an attribute.
func ints(data metricdata.Aggregation, key string) map[string]int64 {
	points := make(map[string]int64)
	var all []metricdata.DataPoint[int64]
	switch data := data.(type) {
	case metricdata.Gauge[int64]:
		all = data.DataPoints
	case metricdata.Sum[int64]:
		all = data.DataPoints
	}
	for _, p := range all {
		v, _ := p.Attributes.Value(attribute.Key(key))
		points[v.String()] += p.Value
	}
	return points
}
