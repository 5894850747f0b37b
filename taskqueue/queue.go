package taskqueue

import (
	"context"
	"maps"
)

// DefaultQueue is the queue that is meant where none is named.
const DefaultQueue = "default"

// A Queue is a queue of a store. Its methods may be called by any number of
// goroutines, and it needs no closing: the store does. A queue comes to be with the
// first task or setting that is stored of it; until then it is an empty one.
//
// Unless it is said otherwise a method makes one call of the store and blocks until
// that has answered or ctx is done. Then its error is the cause of ctx, or what the
// store returns, and the step may have been carried out or not.
type Queue struct {
	store Store
	name  string
	opts  options
	*shared
}

// An Option changes a Queue.
type Option func(*options)

type options struct {
	maxPayload int
	observe    func(Event)
	propagate  Propagator // nil: nothing is carried
}

func (o *options) apply(opts []Option) {
	for _, opt := range opts {
		opt(o)
	}
}

// PayloadLimit is the largest payload that Enqueue accepts, in bytes. Defaults to
// [MaxPayload], and cannot be more than [MaxBatchBytes].
func PayloadLimit(n int) Option {
	return func(o *options) { o.maxPayload = min(max(n, 0), MaxBatchBytes) }
}

// New returns the queue of the name [DefaultQueue] in store. [Queue.In] gives the
// others. It does not ask the store. A nil store is an [*InvalidError].
func New(store Store, opts ...Option) (*Queue, error) {
	if store == nil {
		return nil, invalid("store", "it is nil: pass memstore.New(), or what sqlstore.OpenFile, sqlstore.New or redisstore.New return")
	}
	q := &Queue{store: store, name: DefaultQueue, opts: options{maxPayload: MaxPayload}, shared: new(shared)}
	q.opts.apply(opts)
	return q, nil
}

// In returns the queue of that name in the same store, with the same options and the
// same periodic jobs. A name that is not valid is an error of what is called on it.
func (q *Queue) In(name string) *Queue {
	other := *q
	other.name = name
	return &other
}

// Name returns the name of the queue.
func (q *Queue) Name() string { return q.name }

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
// task has already is p's to replace or leave. The headers that p adds count for [MaxHeaders]. Periodic tasks, which the store
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
