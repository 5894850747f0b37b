package proof

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// This file is a process that takes part in a history.

// A teller is the [Scribe] of such a process. It asks the one that has started it for the time, and
// tells it the entries: each is a line.
type teller struct {
	mu    sync.Mutex
	out   io.Writer
	times <-chan int64
}

// The words of the two processes to each other, beside entries and times.
const (
	asksTime = "time?"
	mayEnd   = "end"
)

func (t *teller) Tick() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = fmt.Fprintln(t.out, asksTime)
	return <-t.times
}

func (t *teller) Note(e Entry) {
	text, err := json.Marshal(e)
	if err != nil {
		panic(err) // no entry does that
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = fmt.Fprintln(t.out, string(text))
}

// listen takes in what the other process says, and has end called when this one may end. If the
// other has ended this one ends, too.
func listen(in io.Reader, times chan<- int64, end func()) {
	for s := bufio.NewScanner(in); s.Scan(); {
		if s.Text() == mayEnd {
			end()
			continue
		}
		at, err := strconv.ParseInt(s.Text(), 10, 64)
		if err != nil {
			break
		}
		times <- at
	}
	os.Exit(1)
}

// tell takes part in a history: one producer and two consumers use one handle until they may end.
func (o order) tell(open Opener) error {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	times := make(chan int64)
	go listen(os.Stdin, times, end)
	c, shut, err := o.client(ctx, open, &teller{out: os.Stdout, times: times})
	if err != nil {
		return err
	}
	defer shut()
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { c.Consume(ctx, false) })
	}
	for i := range o.Each {
		c.Produce(ctx, fmt.Sprintf("%s.%d", o.Name, i))
		c.pause(ctx, 0.1)
	}
	c.s.Note(Entry{Kind: Idle, Who: o.Name})
	all.Wait()
	closing, cancel := context.WithTimeout(context.Background(), endsWithin)
	defer cancel()
	_ = c.Close(closing) // the store may be away
	return closing.Err()
}

// client opens the store, and a handle. The store may be away.
func (o order) client(ctx context.Context, open Opener, s Scribe) (c *Client, shut func(), err error) {
	d := NewDice(o.Seed)
	for ctx.Err() == nil {
		var kv kvqueue.KV
		if kv, shut, err = open(ctx); err == nil {
			var faulty *memkv.Faulty
			c, err = NewClient(ctx, s, o.Name, d, kv, func(kv kvqueue.KV) kvqueue.KV {
				faulty = memkv.NewFaulty(kv, func(_ []kvqueue.Guard, w []kvqueue.Write) memkv.Fault { return faultOf(d, w) })
				return faulty
			}, Limits(kvqueue.TTL(o.TTL))...)
			if err == nil {
				c.Second, c.Groups, c.IDs = o.Second, 2, 3
				closed := shut
				return c, func() { faulty.Wait(); closed() }, nil
			}
			shut()
		}
		d.Pause(ctx, 100*time.Millisecond)
	}
	return nil, nil, err
}
