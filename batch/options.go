package batch

import (
	"fmt"
	"time"
)

// An Option says when a batch is due, or how much it holds. If there are two of a kind
// the last one counts.
type Option interface{ apply(*options) }

type option func(*options)

func (o option) apply(opts *options) { o(opts) }

type options struct {
	number   int // 0: no limit
	size     int // 0: no limit
	sizeOf   any // a func(T) int; nil if there is no size
	age      time.Duration
	capacity int // 0: no limit
}

// Items has a batch flushed as soon as n items wait.
//
//	batch.New(ctx, write, batch.Items(1000))
//
// # Details
//
// n < 1 panics.
func Items(n int) Option {
	if n < 1 {
		panic("batch: Items(n): n must be at least 1; leave the option out for no limit")
	}
	return option(func(o *options) { o.number = n })
}

// Size has a batch flushed as soon as the items that wait have the size n together.
//
//	batch.New(ctx, write, batch.Size(1<<20, func(line string) int { return len(line) }))
//
// # Details
//
// sizeOf says the size of one item, in whatever unit n is in: bytes, as a rule. A size
// below 0 counts as 0. One item may be larger than n: it is flushed at once, with what
// waits before it.
//
// sizeOf is called once for each item, by Add, with no lock held. If it panics, Add does,
// and adds nothing. It is not called for items of Do, which are due at once. n < 1 and a
// nil sizeOf panic, and so does a New of other items than sizeOf takes.
func Size[T any](n int, sizeOf func(item T) int) Option {
	if n < 1 {
		panic("batch: Size(n): n must be at least 1; leave the option out for no limit")
	}
	if sizeOf == nil {
		panic("batch: Size with a nil function: pass one that returns the size of an item")
	}
	return option(func(o *options) { o.size, o.sizeOf = n, sizeOf })
}

// Age has a batch flushed when the oldest of its items has waited for d.
//
//	batch.New(ctx, write, batch.Age(time.Second))
//
// # Details
//
// More items do not start that time again, so it also ends while items keep coming. An
// item that is added while a flush runs waits until that has ended, if that takes longer.
// d <= 0 panics.
func Age(d time.Duration) Option {
	if d <= 0 {
		panic("batch: Age(d): d must be more than 0; leave the option out for no limit")
	}
	return option(func(o *options) { o.age = d })
}

// Capacity bounds how many items are held: those that wait and those that are being
// flushed, so also how many one flush is given.
//
//	batch.New(ctx, write, batch.Items(100), batch.Capacity(1000))
//
// # Details
//
// When there is no room, Add and Do wait, in turn, and what is held is flushed at once.
// Without this option a Batch holds as much as is added. n < 1 panics.
func Capacity(n int) Option {
	if n < 1 {
		panic("batch: Capacity(n): n must be at least 1; leave the option out for no limit")
	}
	return option(func(o *options) { o.capacity = n })
}

// typed returns f as a func(T) int.
func typed[T any](f any) func(T) int {
	if f == nil {
		return nil
	}
	sizeOf, ok := f.(func(T) int)
	if !ok {
		panic(fmt.Sprintf("batch: Size was given a %T, but the items of this batch need a %T", f, sizeOf))
	}
	return sizeOf
}
