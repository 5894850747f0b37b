package kvqueue

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/lease"
)

// A Queue is a handle on a queue in a store. It is made by [Open]. Any number of
// goroutines may use one, and any number of processes may have one on the same queue.
type Queue struct {
	kv     KV
	update Updater // nil: the store is none
	glance reader  // for what is only used to claim items
	lay    layout
	set    settings
	name   string
	limits Limits

	maxItem  int    // the most bytes of an item, and of all that a transaction adds
	maxItems int    // the most items that a transaction adds, claims or settles
	producer uint64 // in the keys of what this handle adds
	started  *lease.Clock

	group     *async.Group // what runs behind the calls; at the root
	returns   *async.Group // in it: what gives items back that nobody waits for any more
	enqueues  combiner[*appending]
	tendOnce  sync.Once     // for the task that lets the ids of this handle go
	opening   chan struct{} // a place for the one that begins a session
	seen      sightings
	lastFloor atomic.Uint64
	lastSpan  atomic.Uint64 // how many hints the next look for ready items spans first
	raiseAt   atomic.Int64  // the floor is raised for less when so many items were claimed
	raising   atomic.Bool   // the floor is being raised
	turns     turns
	counts    counts
	policy    atomic.Pointer[Policy]
	trouble   trouble
	broken    atomic.Pointer[async.PanicError] // what a function that was given as an option has panicked with first

	mu      sync.Mutex
	closed  bool
	session *session // nil: none yet, or the last has ended
	// policyRev is the revision of what policy points to; 0: the store has none.
	policyRev Rev
	waiters   []*waiter
}

// Open returns a handle on the queue of a name, which may be any bytes. The queue is made
// with its first item; opening makes sure that the store can be read, and that its
// revisions have not gone back since the queue was used, as in a cluster that was restored.
// An option that makes no sense is an [*InvalidError].
//
// ctx is for this call only. The handle works until [Queue.Close]; what it does behind its
// calls stands at the root of package async.
func Open(ctx context.Context, kv KV, name string, options ...Option) (*Queue, error) {
	if kv == nil {
		return nil, invalid("store", "it is nil: make one with memkv, sqlitekv or etcdkv")
	}
	if name == "" || len(name) > 1024 {
		return nil, invalid("name", "it has %d bytes, and must have from 1 to 1024", len(name))
	}
	q := &Queue{kv: kv, name: name, limits: kv.Limits(), producer: random(), started: lease.NewClock(), opening: make(chan struct{}, 1)}
	q.set = settings{prefix: defaultPrefix, ttl: 10 * time.Second, owner: defaultOwner()}
	q.policy.Store(&defaultPolicy)
	for _, o := range options {
		if o == nil {
			return nil, invalid("option", "it is nil: leave it out")
		}
		if err := o.apply(&q.set); err != nil {
			return nil, err
		}
	}
	if err := q.fit(); err != nil {
		return nil, err
	}
	q.glance = kv.Read
	if u, ok := kv.(Updater); ok && q.limits.Updates {
		q.update, q.glance = u, u.Glance
	}
	q.lay = newLayout(q.set.prefix, name)
	q.lastSpan.Store(window)
	q.group = async.NewGroup(context.Background(), async.Name("kvqueue "+name))
	q.returns = async.NewGroup(q.group.Context(), async.Name("kvqueue: give items of "+name+" back"))
	q.enqueues = combiner[*appending]{group: q.group, take: q.takeAppendings, run: q.appendBatch, silent: q.silent}
	err := q.check(ctx)
	if err == nil {
		err = q.refuseNewer(ctx)
	}
	if err == nil {
		err = q.agree(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, q.group.Stop(context.WithoutCancel(ctx), ErrClosed))
	}
	if c, ok := kv.(Compacter); ok && q.set.keep > 0 {
		_ = q.group.Go(func(ctx context.Context) error { return q.compact(ctx, c) }, async.Name("kvqueue: compact the store of "+name), async.Daemon())
	}
	return q, nil
}

// layoutVersion is that of the keys that this package writes.
const layoutVersion = layoutWithGroups

// refuseNewer returns an error if the queue has a layout that a later version of this package has made.
func (q *Queue) refuseNewer(ctx context.Context) error {
	results, _, err := q.kv.Read(ctx, q.lay.version())
	if err != nil || len(results[0].Pairs) == 0 {
		return err
	}
	if v, err := strconv.Atoi(string(results[0].Pairs[0].Value)); err != nil || v > layoutVersion {
		return invalid("store", "the layout of queue %q is %q, and this program knows it up to %d: use a later version", q.name, results[0].Pairs[0].Value, layoutVersion)
	}
	return nil
}

// fit fits the queue to the limits of its store.
func (q *Queue) fit() error {
	switch {
	case q.limits.Guards < 16 || q.limits.Writes < 16 || q.limits.Bytes < 4096:
		return invalid("store", "its transactions are too small: %+v", q.limits)
	case q.set.ttl < q.limits.MinTTL:
		return invalid("TTL", "%v is less than the %v of this store", q.set.ttl, q.limits.MinTTL)
	case q.limits.Compaction && !q.set.compacted:
		return invalid("Compact", "this store keeps what was deleted until it is compacted, and a queue would fill it: give Compact, or CompactedElsewhere if its own settings see to it")
	}
	key := len(newLayout(q.set.prefix, q.name).root) + keySize + 32
	q.maxItems = min(63, (q.limits.Guards-2)/2, (q.limits.Writes-2)/2, q.limits.Bytes/4/(2*key)-2)
	if q.maxItems < 1 {
		return invalid("name", "with the prefix its keys are up to %d bytes long, which is too much for a store whose transactions have %d bytes", key, q.limits.Bytes)
	}
	q.maxItem = q.limits.Bytes*2/3 - q.maxItems*2*key
	return nil
}

func defaultOwner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

// clock returns the time since the handle was made, in which a suspended machine is counted,
// too: the store does not wait for it.
func (q *Queue) clock() time.Duration { return q.started.Now() }

// compact has the store forget what was deleted, as long as the handle is open.
func (q *Queue) compact(ctx context.Context, c Compacter) error {
	for {
		_, rev, err := q.kv.Read(ctx, Range{Begin: q.lay.head()})
		if async.Sleep(ctx, q.set.keep) != nil {
			return nil
		}
		if err == nil {
			_ = c.Compact(ctx, rev) // a later one does it
		}
	}
}

// forget notes that a session has ended: the next call that needs one begins another.
func (q *Queue) forget(l *session) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.session == l {
		q.session = nil
	}
}

// Close ends the handle. Calls that wait return [ErrClosed], and those that come later. An item
// that was claimed for a caller that has gone goes back first, without an attempt spent, if the
// store does that within a second. Any other claimed item is for the others at once, so Close is
// called when the handlers have ended; the contexts of those that have not are cancelled. It waits
// until everything behind the handle has ended, or ctx has; for the store no longer than the TTL,
// when the session has ended by itself. It may be called any number of times. If a function that
// was given as an option has panicked, Close returns the first of that as an [*async.PanicError].
func (q *Queue) Close(ctx context.Context) error {
	q.mu.Lock()
	q.closed = true
	l := q.session
	q.mu.Unlock()
	q.refuse(ErrClosed)
	var late error
	if l != nil {
		q.giveAllBack(ctx, l)
		l.end("the queue was closed", ErrClosed)
		end, cancel := context.WithTimeout(ctx, q.set.ttl)
		if err := l.s.End(end); err != nil && !errors.Is(err, ErrSessionLost) {
			late = fmt.Errorf("kvqueue: close %q: what was claimed comes back when the session ends by itself: %w", q.name, err)
		} else {
			q.leave(end, l)
		}
		cancel()
	}
	err := stopped(q.group.Stop(ctx, ErrClosed))
	return errors.Join(late, err, q.brokenBy())
}

// stopped is nil for the error of a group that was only stopped.
func stopped(err error) error {
	var list *async.ScopeError
	if errors.As(err, &list) && len(list.Errors) == 0 {
		return nil
	}
	return err
}
