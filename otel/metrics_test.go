package otelambit_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/ambit-go/ambit/async"
	otelambit "github.com/ambit-go/ambit/otel"
	"github.com/ambit-go/ambit/scheduler"
)

// counts returns how many durations a histogram has by name, of the points whose attribute key is value.
func counts(data metricdata.Aggregation, key, value string) map[string]int64 {
	points := make(map[string]int64)
	for _, p := range data.(metricdata.Histogram[float64]).DataPoints {
		if v, _ := p.Attributes.Value(attribute.Key(key)); v.String() == value {
			name, _ := p.Attributes.Value("ambit.task.name")
			points[name.String()] += int64(p.Count)
		}
	}
	return points
}

func sums(data metricdata.Aggregation) map[string]float64 {
	points := make(map[string]float64)
	for _, p := range data.(metricdata.Histogram[float64]).DataPoints {
		name, _ := p.Attributes.Value("ambit.task.name")
		points[name.String()] += p.Sum
	}
	return points
}

// The exemplar of a duration has the trace and the span of the task.
func TestExemplars(t *testing.T) {
	observed(t, func(ctx context.Context, b *backend) {
		_, err := async.Start(ctx, func(context.Context) error { time.Sleep(42 * time.Second); return nil }, async.Name("fetch")).Wait(ctx)
		require.NoError(t, err)
		p := b.metrics()["ambit.task.duration"].(metricdata.Histogram[float64]).DataPoints[0]
		require.InDelta(t, 42, p.Sum, 0)
		traceID, spanID := b.span("fetch").SpanContext().TraceID(), b.span("fetch").SpanContext().SpanID()
		require.Len(t, p.Exemplars, 1)
		require.Equal(t, traceID[:], p.Exemplars[0].TraceID)
		require.Equal(t, spanID[:], p.Exemplars[0].SpanID)
	})
}

// After 200 names all others are one, in spans, too; those of a series count once.
func TestNamesAreBounded(t *testing.T) {
	observed(t, func(ctx context.Context, b *backend) {
		letters := func(i int) string { return string([]byte{byte('g' + i/26/26), byte('a' + i/26%26), byte('a' + i%26)}) }
		none := func(context.Context) error { return nil }
		for i := range 10_000 {
			async.Go(ctx, none, async.Name(fmt.Sprintf("row-%d", i)))
		}
		synctest.Wait()
		for i := range 10_000 {
			async.Go(ctx, none, async.Name("x"+letters(i)))
		}
		synctest.Wait()
		all := counts(b.metrics()["ambit.task.duration"], "ambit.task.outcome", "ok")
		require.Len(t, all, 201)
		require.EqualValues(t, 10_000, all["row-#"])
		require.EqualValues(t, 10_000-199, all["_OTHER"])
		names := make(map[string]bool)
		for _, s := range b.spans.Ended() {
			names[s.Name()] = true
		}
		require.Len(t, names, 201)
	})
}

// The gauges are what a Snapshot shows.
func TestGauges(t *testing.T) {
	observed(t, func(ctx context.Context, b *backend) {
		end := make(chan struct{})
		waits := func(context.Context) error { <-end; return nil }
		defer close(end)
		async.Start(ctx, func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				for range 5 {
					async.Go(ctx, waits, async.Name("fetch"))
				}
				return nil
			}, async.Limit(2), async.Name("crawl"))
		}, async.Name("crawler"))
		stubborn := async.Start(ctx, waits, async.Name("stubborn"))
		worker := scheduler.New(scheduler.Goroutines()).NewWorker(ctx, scheduler.Name("ledger"))
		for range 3 {
			require.NoError(t, worker.Post(func() { <-end }))
		}
		synctest.Wait()
		stubborn.Cancel(nil)
		all := b.metrics()
		active, queued := ints(all["ambit.task.active"], "ambit.task.name"), ints(all["ambit.task.queued"], "ambit.task.name")
		require.EqualValues(t, 2, active["fetch"])
		require.EqualValues(t, 3, queued["fetch"])
		require.EqualValues(t, 1, active["stubborn"])
		for name, want := range map[string]int64{"ambit.limit.slots": 2, "ambit.limit.held": 2, "ambit.limit.queued": 3} {
			require.Equal(t, map[string]int64{"crawl": want}, ints(all[name], "ambit.task.name"), name)
		}
		require.Equal(t, map[string]int64{"ledger": 2}, ints(all["ambit.worker.queued"], "ambit.part.name"))
		for name, want := range map[string]int64{"ambit.scope.stragglers": 1, "ambit.rings": 0, "ambit.detached": 0} {
			require.Equal(t, map[string]int64{"": want}, ints(all[name], "none"), name)
		}
	})
}

// Without Root the gauges are those of the process.
func TestGaugesOfTheProcess(t *testing.T) {
	read := sdkmetric.NewManualReader()
	telemetry, err := otelambit.New(otelambit.MeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(read))))
	require.NoError(t, err)
	begun, end := make(chan struct{}), make(chan struct{})
	async.Detach(context.Background(), "receipt", func(context.Context) error {
		close(begun)
		<-end
		return nil
	})
	<-begun
	b := &backend{t: t, read: read}
	detached := func() map[string]int64 { return ints(b.metrics()["ambit.detached"], "none") }
	require.Equal(t, map[string]int64{"": 1}, detached())
	close(end)
	for detached()[""] > 0 {
		runtime.Gosched()
	}
	require.NoError(t, telemetry.Shutdown(context.Background()))
}
