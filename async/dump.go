package async

import (
	"context"
	"io"

	"github.com/ambit-go/ambit/async/internal/survey"
	"github.com/ambit-go/ambit/async/internal/tree"
	"github.com/ambit-go/ambit/async/picture"
)

// This file shows the live tree: what runs, who waits for whom, and what is wrong.

// Dump writes the live tree to w, for people: problems first, then every task under its owner, and
// what it waits for.
//
//	async.Dump(os.Stderr)
//
// # Details
//
// It writes at most 400 lines and says what it left out. It shows names, places, types and counts; of users' data
// only the texts of errors with which tasks were stopped or have failed: what goes to others than the developers is
// better made of [Snapshot]. Where a text hangs, that Dump does. It may be called by any number of goroutines, in
// handlers, hooks and observers, too, stops nothing and holds up nobody; see package [picture] for what is
// consistent. The error is that of w.
func Dump(w io.Writer, opts ...LookOption) error {
	o := lookOptions(opts)
	o.Texts = true
	return survey.Take(o).WriteText(w, 0)
}

// Snapshot returns a picture of the live tree, which is plain data, and whose JSON has the schema
// ambit-tree/1.
//
//	err := json.NewEncoder(w).Encode(async.Snapshot(async.Of(ctx)))
//
// # Details
//
// It has types of errors, and texts only with [Texts]. See [Dump].
func Snapshot(opts ...LookOption) *picture.Tree { return survey.Take(lookOptions(opts)) }

// A LookOption says what [Dump] and [Snapshot] are to show. The default is all that stands at the
// root of the process, 5,000 tasks at most.
type LookOption interface{ applyLook(*survey.Options) }

type lookOption func(*survey.Options)

func (o lookOption) applyLook(to *survey.Options) { o(to) }

func lookOptions(opts []LookOption) (o survey.Options) {
	for _, opt := range opts {
		mustNotBeNil(opt)
		opt.applyLook(&o)
	}
	return o
}

// Of shows the scope or task of ctx, and what is in it.
//
//	async.Dump(os.Stderr, async.Of(ctx))
//
// # Details
//
// A ctx without one shows the root of ctx. A root of its own, as in a test with asynctest.Context, is
// seen by Of only. A nil ctx panics.
func Of(ctx context.Context) LookOption {
	t, _ := tree.Nearest(ctx)
	return lookOption(func(o *survey.Options) { o.Top = t })
}

// AtMost bounds how many tasks are shown each for itself; the others are counted in groups of tasks
// that are alike.
//
//	async.Dump(os.Stderr, async.AtMost(100))
//
// # Details
//
// Those in a ring or with another problem are shown first. n < 1 panics.
func AtMost(n int) LookOption {
	if n < 1 {
		panic("async: AtMost(n): n must be at least 1")
	}
	return lookOption(func(o *survey.Options) { o.AtMost = n })
}

// Stacks adds the stacks of the first n tasks that were told to stop and are still there.
//
//	async.Dump(os.Stderr, async.Stacks(3))
//
// # Details
//
// To find them
// stops the world for a moment, which grows with the number of goroutines: 1.4 ms with 1,000 of
// them. Without any such task it is not done. n < 1 panics.
func Stacks(n int) LookOption {
	if n < 1 {
		panic("async: Stacks(n): n must be at least 1; without stacks leave the option out")
	}
	return lookOption(func(o *survey.Options) { o.Stacks = n })
}

// Texts adds the texts of errors, which are users' and may hold anything, to a [Snapshot].
//
//	tree := async.Snapshot(async.Texts())
func Texts() LookOption { return lookOption(func(o *survey.Options) { o.Texts = true }) }
