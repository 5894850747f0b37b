package otelambit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/picture"
)

// Attributes.
const (
	nameKey     = attribute.Key("ambit.task.name")
	outcomeKey  = attribute.Key("ambit.task.outcome")
	idKey       = attribute.Key("ambit.task.id")
	kindKey     = attribute.Key("ambit.task.kind")
	causeKey    = attribute.Key("ambit.task.cause")
	queueKey    = attribute.Key("ambit.task.queue.duration")
	linkKey     = attribute.Key("ambit.link")
	waitKey     = attribute.Key("ambit.wait.duration")
	functionKey = attribute.Key("code.function.name")
	errorKey    = attribute.Key("error.type")
)

// Bounds of spans.
const (
	shortest  = time.Millisecond // what lasted less is no event
	mostStack = 8 << 10
)

// An entry is what the context of a task holds.
type entry struct {
	id   picture.ID
	up   *entry            // of what is around the task; nil: nothing
	span trace.Span        // nil: it has none
	from trace.SpanContext // without a span above: what the traces that begin in the task are linked to
}

type entryKey struct{}

func entryOf(ctx context.Context) *entry {
	e, _ := ctx.Value(entryKey{}).(*entry)
	return e
}

// own returns the entry of the task of e, nil if it has none: that in its context may be of a task around it.
func own(e *async.Event) *entry {
	if x := entryOf(e.Ctx); x != nil && x.id == e.ID {
		return x
	}
	return nil
}

// isEndless reports whether the task of e has no end of its own.
func isEndless(e *async.Event) bool {
	return e.Daemon || e.Of == picture.KindDetached || e.Of == picture.KindGroup
}

// beginsTrace reports whether the task of e does not end before the span that it is started in does, or need not.
func beginsTrace(e *async.Event) bool {
	return isEndless(e) || e.Of == picture.KindRun || e.Owner.IsZero() && e.Of != picture.KindScope
}

// usual reports whether the task of e has a span unless a Filter says otherwise.
func usual(e *async.Event) bool {
	switch {
	case isEndless(e), e.Of == picture.KindHook:
		return false
	default:
		return e.Named || e.Of == picture.KindScope || e.Of == picture.KindRun || e.Owner.IsZero()
	}
}

// Enter starts the span of the task of e, if it has one. See [async.Observe].
func (t *Telemetry) Enter(ctx context.Context, e async.Event) context.Context {
	if e.Of == picture.KindRun && e.ID.Ordinal > 1 {
		t.restarts.Add(ctx, 1, named(t.names.of(e.Task)))
	}
	x := &entry{id: e.ID, up: entryOf(ctx)}
	around := trace.SpanContextFromContext(ctx)
	switch {
	case around.IsValid() && beginsTrace(&e):
		x.from = around
		ctx = trace.ContextWithSpanContext(ctx, trace.SpanContext{})
	case !around.IsValid() && x.up != nil:
		x.from = x.up.from
	}
	has := usual(&e)
	if t.filter != nil {
		has = t.filter(e, has)
	}
	if has {
		ctx = t.startSpan(ctx, x, &e)
	}
	return context.WithValue(ctx, entryKey{}, x)
}

func (t *Telemetry) startSpan(ctx context.Context, x *entry, e *async.Event) context.Context {
	t.mu.Lock()
	closed := t.closed
	t.mu.Unlock()
	if closed {
		return ctx
	}
	attrs := []attribute.KeyValue{idKey.String(e.ID.String()), kindKey.String(string(e.Of))}
	if !e.Named && e.Of != picture.KindScope {
		attrs = append(attrs, functionKey.String(e.Task[strings.LastIndexByte(e.Task, '/')+1:]))
	}
	opts := []trace.SpanStartOption{trace.WithAttributes(attrs...)}
	if x.from.IsValid() {
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: x.from}))
		x.from = trace.SpanContext{}
	}
	ctx, x.span = t.tracer.Start(ctx, t.names.of(e.Task), opts...)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed { // meanwhile
		x.span.End()
	} else {
		t.open[x] = struct{}{}
	}
	return ctx
}

// endSpan ends the span of the task of e, if it has one.
func (t *Telemetry) endSpan(e *async.Event, how outcome, errorType string) {
	x := own(e)
	if x == nil || x.span == nil {
		return
	}
	t.mu.Lock()
	_, open := t.open[x]
	delete(t.open, x)
	t.mu.Unlock()
	if !open {
		return
	}
	span := x.span
	span.SetAttributes(outcomeKey.String(string(how)), queueKey.Float64(e.Queued.Seconds()))
	if e.Cause != nil {
		span.SetAttributes(causeKey.String(fmt.Sprintf("%T", e.Cause)))
	}
	if errorType != "" {
		span.SetAttributes(errorKey.String(errorType))
		span.SetStatus(codes.Error, t.textOf(e.Err))
	}
	now := time.Now()
	if e.Joined >= shortest {
		span.AddEvent("returned", trace.WithTimestamp(now.Add(-e.Joined)))
	}
	span.End(trace.WithTimestamp(now))
}

// panicked notes the panic e in the span of its task.
func (t *Telemetry) panicked(e *async.Event) {
	x := own(e)
	var p *async.PanicError
	if x == nil || x.span == nil || !errors.As(e.Err, &p) {
		return
	}
	attrs := []attribute.KeyValue{
		attribute.String("exception.type", fmt.Sprintf("%T", p.Value)),
		attribute.String("exception.stacktrace", strings.ToValidUTF8(string(p.Stack[:min(len(p.Stack), mostStack)]), "")),
	}
	if t.texts {
		attrs = append(attrs, attribute.String("exception.message", fmt.Sprint(p.Value)))
	}
	x.span.AddEvent("exception", trace.WithAttributes(attrs...))
}

func (t *Telemetry) textOf(err error) string {
	if !t.texts {
		return ""
	}
	return err.Error()
}

// waited links the span of a task that has waited to that of the future. One that is around the task, or inside it,
// is known to whoever sees the trace.
func waited(e *async.Event) {
	if e.On == nil {
		return
	}
	span, on := trace.SpanFromContext(e.Ctx), trace.SpanContextFromContext(e.On)
	if !on.IsValid() || on.Equal(span.SpanContext()) {
		return
	}
	for x := entryOf(e.Ctx); x != nil; x = x.up {
		if x.span != nil && x.span.SpanContext().Equal(on) {
			return
		}
	}
	for x := entryOf(e.On); x != nil; x = x.up {
		if x.id == e.ID {
			return
		}
	}
	span.AddLink(trace.Link{SpanContext: on, Attributes: []attribute.KeyValue{
		linkKey.String("await"), waitKey.Float64(e.Duration.Seconds()),
	}})
}
