package proof

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// childEnv holds what a process is to do that is a worker.
const childEnv = "KVQUEUE_WORKER"

// An order is what a worker process is to do.
type order struct {
	Store  string // as the opener of its test program knows it
	Name   string
	Seed   uint64
	TTL    time.Duration
	Second time.Duration
	Likely int // of 1000 transactions that many go wrong
	Each   int // if it is positive: the process takes part in a history, and adds so many items
}

// Main works if this process was started for that, and does not return then. Call it first
// in TestMain. open opens the store that a test has named.
func Main(open func(store string) Opener) {
	text := os.Getenv(childEnv)
	if text == "" {
		return
	}
	var o order
	err := json.Unmarshal([]byte(text), &o)
	switch {
	case err != nil:
	case o.Each > 0:
		err = o.tell(open(o.Store))
	default:
		err = o.work(open(o.Store))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, o.Name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// endsWithin is how long a worker may take to end when it was told to.
const endsWithin = time.Minute

// work uses the queues until the input ends. Its answers are lines of the output: a word and
// a value.
func (o order) work(open Opener) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	var mu sync.Mutex // a line is written at once
	w := &Worker{Name: o.Name + ".", Dice: NewDice(o.Seed), Second: o.Second, Note: func(word Word, values ...string) {
		mu.Lock()
		defer mu.Unlock()
		for _, v := range values {
			_, _ = os.Stdout.WriteString(string(word) + " " + strings.ReplaceAll(v, "\n", " ") + "\n")
		}
	}}
	for ctx.Err() == nil {
		if err := o.use(ctx, w, open); err != nil && ctx.Err() == nil { // the store may be away
			w.pause(ctx, 1)
		}
	}
	return nil
}

// use opens the store and the queues, and uses them for a while.
func (o order) use(ctx context.Context, w *Worker, open Opener) error {
	kv, shut, err := open(ctx)
	if err != nil {
		return err
	}
	defer shut()
	faulty := memkv.NewFaulty(kv, Faults(w.Dice, o.Likely))
	defer faulty.Wait()
	in, err := kvqueue.Open(ctx, faulty, "in", w.Options(o.TTL)...)
	if err != nil {
		return err
	}
	defer closing(w, in)
	out, err := kvqueue.Open(ctx, faulty, "out", kvqueue.CompactedElsewhere(), kvqueue.RetryDelay(0, 0), kvqueue.TTL(o.TTL))
	if err != nil {
		return err
	}
	defer closing(w, out)
	some, stop := context.WithTimeout(ctx, time.Duration(20+w.Dice.N(100))*o.Second)
	defer stop()
	w.Use(some, in, out, 1, w.Dice.N(5) > 0)
	return nil
}

// closing closes a handle. A store that could not be told, in the time that Close gives it, is no
// fault: it is away.
func closing(w *Worker, q *kvqueue.Queue) {
	ctx, cancel := context.WithTimeout(context.Background(), endsWithin)
	defer cancel()
	if err := q.Close(ctx); ctx.Err() != nil {
		w.Note(Fault, fmt.Sprintf("Close does not end: %v", err))
	}
}
