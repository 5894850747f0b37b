package taskqueue

import (
	"context"
	"maps"
)

// A Propagator carries what a context has, such as the trace that it is part of, in the headers of
// tasks. Headers of github.com/ambit-go/ambit/otel is one for OpenTelemetry.
type Propagator interface {
	// Inject adds to headers, which is never nil, what ctx has. It is called by Enqueue and the like.
	Inject(ctx context.Context, headers map[string]string)
	// Extract returns ctx with what Inject has added to headers, which it must not change. It is called before
	// the handler is, with the context that this is to be given.
	Extract(ctx context.Context, headers map[string]string) context.Context
}

// Propagate has p carry what the ctx of Enqueue has to the handler, in the headers of the task. A header that the
// task has already is p's to replace or leave. What p adds counts for [MaxHeaders]. Periodic tasks, which the store
// adds, have no ctx to carry. A panic of Extract stops the worker as one of an observer does. A nil p panics.
func Propagate(p Propagator) Option {
	if p == nil {
		panic("taskqueue: Propagate(nil): leave the option out instead")
	}
	return func(o *options) { o.propagate = p }
}

// headers returns the headers of a task that is enqueued with ctx; given are those of the caller.
func (q *Queue) headers(ctx context.Context, given map[string]string) map[string]string {
	if q.opts.propagate == nil {
		return given
	}
	headers := maps.Clone(given)
	if headers == nil {
		headers = make(map[string]string)
	}
	q.opts.propagate.Inject(ctx, headers)
	if len(headers) == 0 {
		return given
	}
	return headers
}

// extract returns ctx with what the headers of c carry.
func (w *worker) extract(ctx context.Context, c *Claim) context.Context {
	with := ctx
	if p := w.q.opts.propagate; p != nil {
		w.guard("the propagator", func() { with = p.Extract(ctx, c.Headers) })
	}
	return with
}
