package batch

import (
	"context"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A Batch gathers items of type T and has them flushed together. Any number of
// goroutines may use it. It must be made with [New] or [NewAnswering].
//
// Users' functions are called with no lock held, so they may use the batch.
type Batch[T any] struct {
	// These are set when the batch is made and never change.

	ctx    context.Context // that of New: flushes run under it
	flush  flushFunc[T]
	name   string
	limits options
	sizeOf func(T) int // nil without Size

	// starts are the calls of async.Go for a flusher that are under way. Add is
	// called under mu while closed is false, and Wait after closed was set: so no
	// Add races with Wait, and no flusher is started after it.
	starts sync.WaitGroup

	mu sync.Mutex // guards what follows

	items  []T       // items of Add that wait for a flush, the oldest first
	size   int       // of items together
	oldest time.Time // when the first of items was added; only with an Age
	hint   int       // how many items of Add were flushed last: as many may come again

	calls []*waiter[T] // calls of Do whose items wait for a flush, the oldest first

	timer *time.Timer // calls timeIsUp; nil until needed; not set while items is empty
	aged  bool        // the oldest of items has waited long enough

	// resting: no flush before rested, when the timer fires. Whoever waits for a
	// flush has rested moved forward to awake. See afterFailure.
	resting       bool
	awake, rested time.Time

	scheduled bool // a flusher runs or is being started
	flying    int  // how many items are being flushed
	stopped   bool // ctx was seen to be done: no flusher is started any more
	closed    bool // the scope is ending: nothing is added any more

	// Items of Add are numbered as they are added, from 1. delivered counts them: every
	// item up to that number was delivered. An answering flush that refuses some items
	// gives those the last numbers of the flush.
	added     uint64 // the number of the last one that was added
	delivered uint64 // how many were delivered
	asked     uint64 // the greatest number that Flush has asked for

	adders   []*waiter[T] // calls of Add and Do that wait for room, first come first served
	flushers []*waiter[T] // calls of Flush that wait
}

// A flushFunc flushes items. err is about all of them; answers, if there are any, are
// for each.
type flushFunc[T any] func(ctx context.Context, items []T) (answers []error, err error)

// New returns a batch that calls flush with what was added when it is due.
//
//	lines := batch.New(ctx, write, batch.Items(1000), batch.Age(time.Second))
//
// # Details
//
// [Items], [Size], [Age], [Batch.Flush] and [Batch.Do] say when a flush is due.
//
// The batch belongs to the scope of ctx, which need not wait for it to be empty before it
// ends: what is left when all tasks of the scope have ended is flushed once more; see the
// documentation of the package. On a scope that has ended the batch is closed from the
// first.
//
// flush is called by one goroutine at a time, with no lock held. Its ctx is a child of
// ctx, but that of the last call is not cancelled with it. It may start tasks, which are
// joined before the next call. It may keep items, and must not change them. When it
// returns nil its items are delivered.
//
// For items of [Batch.Add] an error, a panic or Goexit of flush fails the scope, as that
// of a task of [async.Go] does. If [async.OnFailure] or [async.OnPanic] has the scope
// carry on, the batch tries again after its Age, or earlier if a call of Flush, Add or Do
// waits for that, but not before 1 s has passed. Items of [Batch.Do] are flushed once:
// see there.
//
// Once ctx is done no flush is started but the last. Under an [async.Limit] a flush needs
// a slot, as any task does, but for the last. It runs on a goroutine of its own, also in
// a scope with [async.On].
//
// New panics if flush is nil, if ctx is nil or carries no scope, and on a [Size] of other
// items.
func New[T any](ctx context.Context, flush func(ctx context.Context, items []T) error, opts ...Option) *Batch[T] {
	if flush == nil {
		panic("batch: New with a nil function: pass what is to be called")
	}
	return newBatch(ctx, "New", flush, func(ctx context.Context, items []T) ([]error, error) {
		return nil, flush(ctx, items)
	}, opts)
}

// NewAnswering is [New] with a flush that answers each item by itself: answers[i] is what
// [Batch.Do] returns for items[i], nil if that was delivered.
//
//	rows := batch.NewAnswering(ctx, func(ctx context.Context, items []Row) []error { return store.Insert(ctx, items) })
//
// # Details
//
// So one item that a store refuses is not the failure of those beside it. An item of
// [Batch.Add] that is answered with an error was not delivered: the first such answer
// fails the scope, and these items come first in the next flush.
//
// There must be as many answers as items. If there are not, or if a task that flush has
// started fails, that is an error of the whole flush, and the answer to each item.
func NewAnswering[T any](
	ctx context.Context, flush func(ctx context.Context, items []T) (answers []error), opts ...Option,
) *Batch[T] {
	if flush == nil {
		panic("batch: NewAnswering with a nil function: pass what is to be called")
	}
	return newBatch(ctx, "NewAnswering", flush, func(ctx context.Context, items []T) ([]error, error) {
		n := len(items)
		answers := flush(ctx, items)
		if len(answers) != n {
			return nil, wrongAnswers(len(answers), n)
		}
		return answers, nil
	}, opts)
}

// newBatch returns a batch for the user's function, which flush calls. maker names
// the exported function.
func newBatch[T any](
	ctx context.Context, maker string, function any, flush flushFunc[T], opts []Option,
) *Batch[T] {
	b := &Batch[T]{ctx: ctx, flush: flush, name: "batch of " + funcName(function)}
	for _, opt := range opts {
		if opt == nil {
			panic("batch: " + maker + ": an option is nil: leave it out instead")
		}
		opt.apply(&b.limits)
	}
	b.sizeOf = typed[T](b.limits.sizeOf)
	b.join(maker)
	return b
}

// Len returns how many items the batch holds: those that wait for a flush, and those that
// are being flushed.
//
//	backlog.Set(float64(lines.Len())) // a program that shows its load
//
// # Details
//
// Len is what [Capacity] bounds. Items of calls that wait for room are not among them. A
// flush that has failed puts its items back, so they count on. Len does not block, and
// may be called by any goroutine, in flush, too; after the end it is 0.
func (b *Batch[T]) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lenLocked()
}

// join has b ended by its scope.
func (b *Batch[T]) join(maker string) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case string: // there is no scope
			panic(strings.Replace(r, "async: OnExit", "batch: "+maker, 1))
		default:
			panic(r)
		}
	}()
	async.OnExit(b.ctx, b.end)
}

// funcName returns the name of a function without the path of its package.
func funcName(f any) string {
	name := runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()
	return strings.TrimSuffix(name[strings.LastIndexByte(name, '/')+1:], "-fm")
}
