package proof

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// A Worker does at random what a process does with a queue, and says each time what it asks
// for and what it is told. A worker that ends between the two leaves open what came of it.
type Worker struct {
	Name string // all that it adds begins with it
	Dice *Dice
	// Second is for how long a second is meant: a program in real time has short ones.
	Second time.Duration
	Note   func(w Word, values ...string)

	names atomic.Int64
}

var errFails = errors.New("the handler fails")

func (w *Worker) pause(ctx context.Context, seconds float64) {
	w.Dice.Pause(ctx, time.Duration(seconds*float64(w.Second)))
}

// Options are some with which a handle is opened.
func (w *Worker) Options(ttl time.Duration) []kvqueue.Option {
	o := []kvqueue.Option{kvqueue.TTL(ttl), kvqueue.MaxAttempts(3), kvqueue.MaxCrashes(5), kvqueue.CompactedElsewhere(), kvqueue.RetryDelay(0, 0)}
	if w.Dice.N(2) == 0 {
		o = append(o, kvqueue.RetryDelay(w.Second/2, w.Second))
	}
	return o
}

// Faults says for transactions at random that they go wrong: of 1000 as many as likely.
func Faults(d *Dice, likely int) func([]kvqueue.Guard, []kvqueue.Write) memkv.Fault {
	return func([]kvqueue.Guard, []kvqueue.Write) memkv.Fault {
		if d.N(1000) >= likely {
			return memkv.None
		}
		return []memkv.Fault{memkv.Conflict, memkv.Dropped, memkv.Unanswered, memkv.Late}[d.N(4)]
	}
}

// Use has so many producers, a consumer if that is asked for, and one that requeues dead
// letters at times, use a queue until ctx ends. An item that is forwarded goes to out.
func (w *Worker) Use(ctx context.Context, q, out *kvqueue.Queue, producers int, consumes bool) {
	var all sync.WaitGroup
	for range producers {
		all.Go(func() { w.produce(ctx, q) })
	}
	if consumes {
		all.Go(func() { w.consume(ctx, q, out) })
	}
	if w.Dice.N(3) == 0 {
		all.Go(func() { w.requeue(ctx, q) })
	}
	all.Wait()
}

func (w *Worker) produce(ctx context.Context, q *kvqueue.Queue) {
	for ctx.Err() == nil {
		if w.Dice.N(3) == 0 {
			w.addOnce(ctx, q)
			w.pause(ctx, 1)
			continue
		}
		n := 1 + w.Dice.N(4)
		if w.Dice.N(20) == 0 {
			n = 70
		}
		var items [][]byte
		var values []string
		for range n {
			v := fmt.Sprint(w.Name, w.names.Add(1))
			values, items = append(values, v), append(items, []byte(v))
		}
		w.Note(Adds, values...)
		var pos kvqueue.Position
		var err error
		switch group := kvqueue.Group(fmt.Sprint("group/", w.Dice.N(3))); {
		case n == 1 && w.Dice.N(4) > 0:
			_, err = q.Add(ctx, items[0], group)
		case n == 2:
			err = q.Transact(ctx, func(tx *kvqueue.Tx) { tx.Add(q, items[0], group); tx.Add(q, items[1], group) })
		case n < 5 && w.Dice.N(4) == 0:
			err = q.Transact(ctx, func(tx *kvqueue.Tx) { tx.Enqueue(q, items...) })
		default:
			pos, err = q.Enqueue(ctx, items...)
		}
		switch {
		case err == nil:
			w.Note(Added, values...)
		case errors.Is(err, kvqueue.ErrUnknown):
			w.Note(Added, values[:pos.Items]...)
		default:
			w.Note(Added, values[:pos.Items]...)
			w.Note(Refused, values[pos.Items:]...)
		}
		if errors.Is(err, kvqueue.ErrClosed) {
			return
		}
		w.pause(ctx, 1)
	}
}

func (w *Worker) consume(ctx context.Context, q, out *kvqueue.Queue) {
	workers, most := 1+w.Dice.N(3), 1+w.Dice.N(4)
	err := q.Consume(ctx, workers, most, func(ctx context.Context, items []kvqueue.Item) error {
		return w.handle(ctx, q, out, items)
	})
	if err != nil && ctx.Err() == nil {
		w.Note(Fault, fmt.Sprintf("Consume returned %v", err))
	}
}

func texts(items []kvqueue.Item) (values []string) {
	for _, i := range items {
		values = append(values, string(i.Value))
	}
	return values
}

func (w *Worker) handle(ctx context.Context, q, out *kvqueue.Queue, items []kvqueue.Item) error {
	had := map[string]bool{}
	for _, i := range items {
		if had[i.Group] {
			w.Note(Fault, fmt.Sprintf("two items of the group %q are in one claim", i.Group))
		}
		had[i.Group] = i.Group != ""
	}
	if w.Dice.N(2) == 0 {
		w.pause(ctx, 0.5)
	}
	switch w.Dice.N(12) {
	case 0:
		return errFails
	case 1:
		w.pause(ctx, 4)
	case 2:
		_ = q.Nack(ctx, errFails, items[0])
		items = items[1:]
	case 3:
		_ = q.Nack(ctx, nil, items...)
		return nil
	case 4, 5:
		w.Note(Wants, texts(items)...)
		if err := q.Ack(ctx, items...); err == nil {
			w.Note(Acked, texts(items)...)
		}
		return nil
	case 6, 7, 8:
		return w.commit(ctx, q, out, items)
	}
	w.Note(Wants, texts(items)...)
	return nil
}

// commit forwards items. The guard of an effect holds as long as no item is forwarded twice.
func (w *Worker) commit(ctx context.Context, q, out *kvqueue.Queue, items []kvqueue.Item) error {
	values := texts(items)
	w.Note(Wants, values...)
	w.Note(Commits, values...)
	err := q.Commit(ctx, items, func(tx *kvqueue.Tx) {
		for _, i := range items {
			options := []kvqueue.AddOption{}
			if _, isShared := strings.CutPrefix(string(i.Value), shared); isShared {
				options = append(options, kvqueue.ID(string(i.Value)))
			}
			if i.Group != "" {
				options = append(options, kvqueue.Group(i.Group))
			}
			tx.Add(out, i.Value, options...)
			tx.Put(fmt.Appendf(nil, "effect/%s", i.Value), nil)
			tx.If(kvqueue.Guard{Key: fmt.Appendf(nil, "effect/%s", i.Value), Is: kvqueue.Absent})
		}
	})
	switch {
	case err == nil:
		w.Note(Acked, values...)
		w.Note(Forward, values...)
	case errors.Is(err, kvqueue.ErrUnknown):
	case errors.Is(err, kvqueue.ErrConflict):
		w.Note(Fault, fmt.Sprintf("the guard of an effect does not hold: %v", err))
	default:
		w.Note(Kept, values...)
	}
	return err
}

func (w *Worker) requeue(ctx context.Context, q *kvqueue.Queue) {
	for ctx.Err() == nil {
		w.pause(ctx, 2)
		letters, err := q.Dead(ctx, kvqueue.Key{}, 3)
		if err != nil {
			continue
		}
		for _, l := range letters {
			_, _ = q.Requeue(ctx, l.Key)
		}
	}
}

// Drain takes what is left in the queue "in" of a store, and returns when nothing is. It looks at
// one revision, as Len does not: an item that goes back to its place while Len reads is not counted.
func (w *Worker) Drain(ctx context.Context, kv kvqueue.KV, q *kvqueue.Queue) error {
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	all.Go(func() {
		_ = q.Consume(ctx, 3, 5, func(_ context.Context, items []kvqueue.Item) error {
			w.Note(Wants, texts(items)...)
			return nil
		})
	})
	for {
		payloads, _, err := kv.Read(ctx, kvqueue.Range{Begin: []byte("kvq/in/d/"), End: []byte("kvq/in/d0"), Limit: 1, KeysOnly: true})
		if err != nil {
			return err
		}
		if len(payloads[0].Pairs) == 0 {
			return nil
		}
		letters, err := q.Dead(ctx, kvqueue.Key{}, 100)
		if err != nil {
			return err
		}
		for _, l := range letters {
			if _, err := q.Requeue(ctx, l.Key); err != nil {
				return err
			}
		}
		w.pause(ctx, 1)
		if ctx.Err() != nil {
			n, _ := q.Len(context.WithoutCancel(ctx))
			return fmt.Errorf("%w: left are %+v", ctx.Err(), n)
		}
	}
}
