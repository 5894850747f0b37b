package asynctest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/internal/survey"
	"github.com/ambit-go/ambit/async/internal/tree"
	"github.com/ambit-go/ambit/async/picture"
)

// This file shows the live tree of a test: when it fails, when it hangs, and when it waits in vain.

// mostLines is how many lines of a tree are shown.
const mostLines = 120

// treeOf returns the text of what is at the root of ctx, the scope of [Context] included; "" if there
// is nothing.
func treeOf(ctx context.Context) string {
	t, _ := tree.Nearest(ctx)
	root := t.Home()
	pic := survey.Take(survey.Options{Top: root.Task(), Texts: true, Stacks: 8})
	if len(pic.Nodes) == 0 || len(pic.Nodes) == 1 && root.Top != nil && pic.Nodes[0].Live == 0 {
		return ""
	}
	var b strings.Builder
	_ = pic.WriteText(&b, 0) // a Builder does not fail
	lines := strings.SplitAfterN(b.String(), "\n", mostLines+1)
	if len(lines) > mostLines {
		lines[mostLines] = fmt.Sprintf("and %d more lines\n", strings.Count(lines[mostLines], "\n"))
	}
	return strings.Join(lines, "")
}

func logTree(t testing.TB, ctx context.Context) {
	t.Helper()
	if text := treeOf(ctx); text != "" {
		t.Log("\n" + text)
	}
}

// An end is that of a test: it shows the tree, if the test has failed or is about to be killed, before
// anything in it is told to stop.
type end struct {
	t    testing.TB
	done chan struct{}
	stop func() bool // of the watch for the end of the time of all tests

	mu   sync.Mutex // guards what follows
	root context.Context
}

// untilEnd returns a context that is cancelled as that of t is, when the tree was shown.
func untilEnd(t testing.TB) (context.Context, *end) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(t.Context()))
	e := &end{t: t, done: make(chan struct{}), stop: func() bool { return false }}
	context.AfterFunc(t.Context(), func() {
		defer close(e.done)
		e.stop()
		if root := e.shown(); t.Failed() && root != nil {
			logTree(t, root)
		}
		cancel(context.Cause(t.Context()))
	})
	return ctx, e
}

// show has e show the tree at the root of root.
func (e *end) show(root context.Context) {
	e.mu.Lock()
	e.root = root
	e.mu.Unlock()
	limited, ok := e.t.(interface{ Deadline() (time.Time, bool) })
	if !ok || tree.InBubble() { // its time is not that of -timeout
		return
	}
	if deadline, ok := limited.Deadline(); ok {
		left := time.Until(deadline)
		e.stop = time.AfterFunc(left-max(left/20, time.Second), e.hangs).Stop
	}
}

func (e *end) shown() context.Context {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.root
}

// hangs is called shortly before the program is killed. The log of a test is lost then.
func (e *end) hangs() {
	if text := treeOf(e.shown()); text != "" {
		fmt.Fprintf(os.Stderr, "asynctest: the time of all tests is about to end, and %s goes on:\n%s", e.t.Name(), text)
	}
}

// wait waits until the tree was shown, if it is to be, and the context is cancelled.
func (e *end) wait() { <-e.done }

// Run runs test in a synctest bubble, with a [Context].
//
//	asynctest.Run(t, func(t *testing.T, ctx context.Context) { upload(ctx) })
//
// # Details
//
// Where every goroutine of the bubble blocks for good, package synctest panics with their stacks;
// Run writes to the standard error before that who waits for whom.
func Run(t *testing.T, test func(t *testing.T, ctx context.Context)) {
	t.Helper()
	var root context.Context
	defer func() {
		value := recover()
		if value == nil {
			return
		}
		if text := fmt.Sprint(value); root != nil && strings.HasPrefix(text, "deadlock:") {
			fmt.Fprintf(os.Stderr, "asynctest: all of %s blocks:\n%s", t.Name(), treeOf(root))
		}
		panic(value)
	}()
	synctest.Test(t, func(t *testing.T) {
		root = Context(t)
		test(t, root)
	})
}

// Eventually waits until cond, which is called on this goroutine again and again, returns true.
//
//	asynctest.Eventually(t, ctx, time.Minute, func() bool { return queue.Len() == 0 })
//
// # Details
//
// If it has not within that time, the test ends at once, as by t.FailNow, and shows the tree of
// ctx. In a synctest bubble time is virtual, and before each call everything else has come to a
// rest.
func Eventually(t testing.TB, ctx context.Context, within time.Duration, cond func() bool) {
	t.Helper()
	if !eventually(ctx, within, cond) {
		t.Fatalf("asynctest: it has not come true in %v\n%s", within, treeOf(ctx))
	}
}

// eventually reports whether cond comes true. The pauses between two calls double.
func eventually(ctx context.Context, within time.Duration, cond func() bool) bool {
	began := time.Now()
	for pause := time.Millisecond; ; pause *= 2 {
		if tree.InBubble() {
			synctest.Wait()
		}
		left := within - time.Since(began)
		switch {
		case cond():
			return true
		case left <= 0 || async.Sleep(ctx, min(pause, left)) != nil:
			return false
		}
	}
}

// NoStragglers fails the test unless all that was told to stop at the root of ctx has gone, and
// nothing detached or left behind by [async.DetachAfter] is there.
//
//	asynctest.NoStragglers(t, ctx)
//
// # Details
//
// It gives them 5 s, which is virtual time in a synctest bubble. The failure shows the tree.
func NoStragglers(t testing.TB, ctx context.Context) {
	t.Helper()
	task, _ := tree.Nearest(ctx)
	top := task.Home().Task()
	gone := func() bool {
		pic := survey.Take(survey.Options{Top: top})
		for _, n := range pic.Nodes {
			if n.Kind == picture.KindDetached || n.Kind == picture.KindLeft {
				return false
			}
		}
		for _, p := range pic.Problems {
			if p.Kind == picture.ProblemStraggler {
				return false
			}
		}
		return true
	}
	if !eventually(context.WithoutCancel(ctx), patience, gone) {
		t.Errorf("asynctest: something that was told to stop is still there, or is detached\n%s", treeOf(ctx))
	}
}
