package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/sqlitekv"
)

// A demoProcess is one process of the demo.
type demoProcess struct {
	q       *kvqueue.Queue
	journal *os.File
	number  string
}

// note writes a line into the journal: one write, so that those of several processes stand
// there in the order in which they were written.
func (p *demoProcess) note(format string, args ...any) error {
	_, err := fmt.Fprintf(p.journal, format+"\n", args...)
	return err
}

// asDemoProcess opens what a process of the demo needs, and calls f.
func asDemoProcess(ctx context.Context, args []string, f func(p *demoProcess) error) (err error) {
	if len(args) != 3 {
		return usagef("this is for kvq demo")
	}
	p := &demoProcess{number: args[2]}
	if p.journal, err = os.OpenFile(args[1], os.O_APPEND|os.O_WRONLY, 0); err != nil {
		return err
	}
	defer func() { _ = p.journal.Close() }()
	kv, err := sqlitekv.Open(args[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kv.Close()) }()
	p.q, err = kvqueue.Open(ctx, kv, demoQueue, kvqueue.TTL(demoTTL))
	if err != nil {
		return err
	}
	err = f(p)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
	defer cancel()
	return errors.Join(err, p.q.Close(end))
}

// demoProducer adds items one after another.
func demoProducer(ctx context.Context, args []string) error {
	return asDemoProcess(ctx, args, func(p *demoProcess) error {
		for i := range demoItems {
			value := fmt.Sprintf("%s.%04d", p.number, i)
			if err := p.note("adding %s", value); err != nil {
				return err
			}
			if _, err := p.q.Enqueue(ctx, []byte(value)); err != nil {
				return err
			}
			if err := p.note("added %s", value); err != nil {
				return err
			}
			if err := async.Sleep(ctx, 3*time.Millisecond); err != nil {
				return err
			}
		}
		return nil
	})
}

// demoConsumer takes items and acknowledges them. The consumer of number 0 stays on one.
func demoConsumer(ctx context.Context, args []string) error {
	return asDemoProcess(ctx, args, func(p *demoProcess) error {
		taken := 0
		err := p.q.Consume(ctx, 1, 3, func(ctx context.Context, items []kvqueue.Item) error {
			for _, i := range items {
				if err := p.note("run %s %d %d", i.Value, i.Attempt, i.Fence); err != nil {
					return err
				}
				if taken++; taken == demoHolds && p.number == "0" {
					fmt.Println("stays")
					<-ctx.Done()
					return ctx.Err()
				}
				if err := async.Sleep(ctx, 2*time.Millisecond); err != nil {
					return err
				}
				if err := p.q.Ack(context.WithoutCancel(ctx), i); err != nil { // the queue may be empty by it, and we are told to end
					return err
				}
				if err := p.note("acked %s", i.Value); err != nil {
					return err
				}
			}
			return nil
		})
		if ctx.Err() != nil { // the queue is empty
			return nil
		}
		return err
	})
}
