package batch

import (
	"context"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A Batch gathers items of type T and has them flushed together. Any number of
// goroutines may use it. It must be made with [New].
//
// Users' functions are called with no lock held, so they may use the batch.
type Batch[T any] struct {
	// These are set by New and never change.

	ctx    context.Context // that of New: flushes run under it
	flush  func(ctx context.Context, items []T) error
	name   string
	limits options
	sizeOf func(T) int // nil without Size

	// starts are the calls of async.Go for a flusher that are under way. Add is
	// called under mu while closed is false, and Wait after closed was set: so no
	// Add races with Wait, and no flusher is started after it.
	starts sync.WaitGroup

	mu sync.Mutex // guards what follows

	items  []T       // added, not being flushed; the oldest first
	size   int       // of items together
	oldest time.Time // when the first of items was added; only with an Age
	hint   int       // how many were flushed last: as many may come again

	timer *time.Timer // calls timeIsUp; nil until needed; not set while items is empty
	aged  bool        // the oldest of items has waited long enough

	// resting: no flush before rested, when the timer comes. Somebody who waits for a
	// flush has that be no later than awake. See afterFailure.
	resting       bool
	awake, rested time.Time

	scheduled bool // a flusher runs or is being started
	flying    int  // how many items are being flushed
	stopped   bool // ctx was seen to be done: no flusher is started any more
	closed    bool // the scope is ending: nothing is added any more

	// Items are numbered as they are added, from 1. They are delivered in that
	// order, so two numbers say what has become of each.
	added     uint64 // the number of the last one that was added
	delivered uint64 // the number of the last one that was delivered
	asked     uint64 // the greatest number that Flush has asked for

	adders   []*waiter[T] // wait for room, first come first served
	flushers []*waiter[T] // wait for a flush
}

// New returns a batch that calls flush with what was added when it is due: see
// [Items], [Size], [Age] and [Batch.Flush].
//
// The batch belongs to the scope of ctx, which need not wait for it to be empty
// before it ends: what is left when all tasks of the scope have ended is flushed
// once more; see the documentation of the package. On a scope that has ended the
// batch is closed from the first.
//
// flush is called by one goroutine at a time, with no lock held. Its ctx is a child
// of ctx, but that of the last call is not cancelled with it. It may start tasks,
// which are joined before the next call. It may keep items, and after an error it is
// given the same slice again, with more behind. When it returns nil its items are
// delivered. An error, a panic or Goexit fails the scope, as that of a task of
// [async.Go] does. If [async.OnFailure] or [async.OnPanic] has the scope carry
// on, the batch tries again after its Age, or earlier if a call of Flush or Add
// waits for that, but not before 1 s has passed.
//
// Once ctx is done no flush is started but the last. Under an [async.Limit] a flush
// needs a slot, as any task does, but for the last. It runs on a goroutine of its
// own, also in a scope with [async.On].
//
// New panics if flush is nil, if ctx is nil or carries no scope, and on a [Size] of
// other items.
func New[T any](ctx context.Context, flush func(ctx context.Context, items []T) error, opts ...Option) *Batch[T] {
	if flush == nil {
		panic("batch: New with a nil function: pass what is to be called")
	}
	b := &Batch[T]{ctx: ctx, flush: flush, name: "batch of " + funcName(flush)}
	for _, opt := range opts {
		if opt == nil {
			panic("batch: New: an option is nil: leave it out instead")
		}
		opt.apply(&b.limits)
	}
	b.sizeOf = typed[T](b.limits.sizeOf)
	b.join()
	return b
}

// join has b ended by its scope.
func (b *Batch[T]) join() {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case string: // there is no scope
			panic(strings.Replace(r, "async: OnExit", "batch: New", 1))
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

// Add adds items, all of them or none. With a nil error they are accepted: they
// will be delivered, or be in the [*LostError] of the scope. With an error none of
// them will ever be delivered.
//
// Add blocks only while there is no room for the items together; see [Capacity].
// Those that wait are served in turn. The wait ends with an error when ctx is done,
// when the ctx of the batch is, when a flush fails, and when the batch is closed.
// The task of ctx lends its slot of an [async.Limit] meanwhile. If there is room,
// it does not matter that ctx is done: in a scope that is cancelled tasks may add
// their last words.
//
// After the end the error matches [async.ErrScopeEnded]. More items than the
// Capacity are refused with [ErrTooMany]. An Add inside flush, that is with its ctx,
// adds to the next flush. If it would have to wait for room, it would wait for
// itself, and it returns an error that matches [async.ErrAwaitCycle]. A nil ctx
// panics. The slice of items is the caller's again when Add has returned.
func (b *Batch[T]) Add(ctx context.Context, items ...T) error {
	if ctx == nil {
		panic("batch: Add with a nil ctx: pass that of the task that adds")
	}
	if len(items) == 0 {
		return nil
	}
	size := b.sizeOfAll(items)
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return errClosed
	}
	if !b.hasRoomLocked(len(items)) {
		b.mu.Unlock()
		return b.addInTurn(ctx, slices.Clone(items), size)
	}
	b.acceptLocked(items, size)
	start := b.claimLocked()
	b.mu.Unlock()
	if start {
		b.start()
	}
	return nil
}

// Flush has everything flushed that was added before the call, without waiting
// for a number, a size or an age, and returns when it was delivered. It waits for
// the flush that is under way, and for its turn after that.
//
// If a flush fails, Flush returns its error, and the items are flushed again
// later; see the documentation of the package. When ctx is done, or the ctx of
// the batch, Flush returns an error that matches that one's Err and Cause. The
// items are delivered all the same, or are in the [*LostError] of the scope. After
// the end the error matches [async.ErrScopeEnded], unless there is nothing left to
// deliver: then it is nil.
//
// The task of ctx lends its slot of an [async.Limit] while it waits. Inside flush,
// that is with its ctx, Flush would wait for itself: it returns an error that
// matches [async.ErrAwaitCycle]. A nil ctx panics.
func (b *Batch[T]) Flush(ctx context.Context) error {
	if ctx == nil {
		panic("batch: Flush with a nil ctx: pass that of the task that waits")
	}
	if b.inside(ctx) {
		return b.selfWait("Flush")
	}
	b.mu.Lock()
	upTo := b.added
	idle := b.delivered == upTo
	b.mu.Unlock()
	if idle {
		return nil
	}
	w := b.newWaiter()
	w.upTo = upTo
	b.mu.Lock()
	b.asked = max(b.asked, upTo)
	missing := b.delivered < upTo
	over := b.closed && b.flying == 0 && len(b.items) == 0 // what is missing is lost
	waits := missing && !over
	if waits {
		b.flushers = append(b.flushers, w)
		b.wakeLocked()
	}
	start := b.claimLocked()
	b.mu.Unlock()
	if start {
		b.start()
	}
	if waits {
		return b.waitForFlush(ctx, w)
	}
	w.answer(nil) // nobody will
	if missing {
		return errClosed
	}
	return nil
}

// sizeOfAll returns the size of items together. It calls the user's function, so
// no lock is held.
func (b *Batch[T]) sizeOfAll(items []T) (size int) {
	if b.sizeOf == nil {
		return 0
	}
	for _, item := range items {
		size = plus(size, max(b.sizeOf(item), 0))
	}
	return size
}

// plus returns a + b, neither of which is negative, or the most that there is.
func plus(a, b int) int { return a + min(b, math.MaxInt-a) }

// acceptLocked adds items.
func (b *Batch[T]) acceptLocked(items []T, size int) {
	if len(b.items) == 0 {
		if b.limits.age > 0 {
			b.oldest = time.Now()
			b.setTimerLocked(b.limits.age)
		}
		b.items = make([]T, 0, max(len(items), b.hint))
	}
	b.items = append(b.items, items...)
	b.size = plus(b.size, size)
	b.added += uint64(len(items))
}
