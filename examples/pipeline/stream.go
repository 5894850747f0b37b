package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"

	"github.com/ambit-go/ambit/async"
)

// A stream takes blocks from a reader through work to a writer, and keeps their
// order. The three stages run at the same time, and work on several blocks at once.
//
// All the memory it uses is in its blocks, of which there are so many and no more.
// A block goes from stage to stage and back to the first, so the slowest stage sets
// the pace of the others: when the writer does not keep up nothing is read.
type stream struct {
	in     io.Reader
	work   func(to *bytes.Buffer, block []byte) error
	out    io.Writer
	blocks int // held at once
	size   int // bytes of a block

	read, written atomic.Int64 // bytes
}

// A block is a piece of the stream, in the hands of one stage at a time.
type block struct {
	before []byte       // as it was read
	after  bytes.Buffer // as it is written
}

// run takes the stream to its end. The first failure of any stage stops the
// others, and is returned. So is the end of ctx.
func (s *stream) run(ctx context.Context) error {
	free := make(chan *block, s.blocks)
	for range s.blocks {
		free <- &block{before: make([]byte, s.size)}
	}
	// It has room for every block there is, so to send never blocks.
	queue := make(chan *async.Future[*block], s.blocks)
	return async.Scope(ctx, func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error { return s.produce(ctx, free, queue) }, async.Name("read"))
		async.Go(ctx, func(ctx context.Context) error { return s.consume(ctx, queue, free) }, async.Name("write"))
		return nil
	})
}

// produce reads blocks and has them worked on. It waits for a block that is free:
// that is the back-pressure. The queue is in the order in which they were read, and is
// closed at the end.
func (s *stream) produce(ctx context.Context, free <-chan *block, queue chan<- *async.Future[*block]) error {
	defer close(queue)
	for first := true; ; first = false {
		var b *block
		select {
		case b = <-free:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		whole := b.before[:s.size]
		n, err := until(ctx, func() (int, error) { return io.ReadFull(s.in, whole) })
		s.read.Add(int64(n))
		b.before = whole[:n]
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return err
		}
		if n > 0 || first { // of nothing an empty block is made
			queue <- async.Execute(ctx, func(context.Context) (*block, error) {
				b.after.Reset()
				return b, s.work(&b.after, b.before)
			}, async.Name("work"))
		}
		if last {
			return nil
		}
	}
}

// consume writes blocks in the order of the queue, each when it is ready, and sets
// them free.
func (s *stream) consume(ctx context.Context, queue <-chan *async.Future[*block], free chan<- *block) error {
	for {
		var f *async.Future[*block]
		var more bool
		select {
		case f, more = <-queue:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if !more {
			return nil
		}
		b, err := f.Await(ctx, 0)
		if err != nil {
			return err
		}
		whole := b.after.Bytes()
		n, err := until(ctx, func() (int, error) { return s.out.Write(whole) })
		s.written.Add(int64(n))
		if err != nil {
			return err
		}
		free <- b
	}
}

// until returns what call does, or the cause when ctx is done before.
//
// The system ends neither a read of a terminal nor a write to a pipe that is full
// because a ctx is done. Such a call is left behind, with its block, until the program
// ends: hence a go statement, and no task, for which its scope would wait.
func until(ctx context.Context, call func() (int, error)) (int, error) {
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	go func() {
		n, err := call()
		done <- result{n, err}
	}()
	select {
	case r := <-done:
		return r.n, r.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}
