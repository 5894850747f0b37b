package record

import (
	"fmt"
	"time"
)

// This file is what can be asked of a recorder.

// A RecorderOption changes a [Recorder].
type RecorderOption interface{ apply(*settings) }

type recorderOption func(*settings)

func (o recorderOption) apply(s *settings) { o(s) }

type settings struct {
	bytes   int
	callers bool
	over    time.Duration // waits that are shorter are not kept
	one     int64         // of so many unnamed leaves one is kept
}

// Bytes is how much memory a [Recorder] may take for events.
//
//	rec := record.New(record.Bytes(64 << 20))
//
// # Details
//
// Defaults to 4 MiB, which is 52,000 events. The memory is taken as it is needed, and is never more. n < 64 KiB panics.
func Bytes(n int) RecorderOption {
	if n < 64<<10 {
		panic(fmt.Sprintf("record: Bytes(%d): at least 64 KiB", n))
	}
	return recorderOption(func(s *settings) { s.bytes = n })
}

// Callers keeps where each task was started: the line that called Go, Execute, or whatever else has started it.
//
//	rec := record.New(record.Callers())
//
// # Details
//
// It costs a look at the stack at each start, less than a microsecond, which is why it is not the default. Without
// it a task is known by its name, which is that of its function if it was given none.
func Callers() RecorderOption { return recorderOption(func(s *settings) { s.callers = true }) }

// WaitsOver is how long a wait has to last for being kept.
//
//	rec := record.New(record.WaitsOver(100 * time.Millisecond))
//
// # Details
//
// Defaults to a millisecond, and less is never kept: d < 1 ms panics. A wait is for a future, for time to pass, or
// for what another package notes with [part.Wait]. Waits take their place among the events: many short ones shorten
// the time that a recording has.
//
// [part.Wait]: https://pkg.go.dev/github.com/ambit-go/ambit/async/part#Wait
func WaitsOver(d time.Duration) RecorderOption {
	if d < time.Millisecond {
		panic(fmt.Sprintf("record: WaitsOver(%v): at least 1 ms", d))
	}
	return recorderOption(func(s *settings) { s.over = d })
}

// Sample keeps one of n tasks that have no name, have started and awaited nothing, and have ended well or because
// they were told to.
//
//	rec := record.New(record.Sample(100))
//
// # Details
//
// All other tasks are kept, so failures are, and so is what has a [async.Name]. The recording says how many were
// left out. n < 1 panics.
func Sample(n int) RecorderOption {
	if n < 1 {
		panic(fmt.Sprintf("record: Sample(%d): at least 1, which keeps all", n))
	}
	return recorderOption(func(s *settings) { s.one = int64(n) })
}
