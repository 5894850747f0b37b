package async

import (
	"context"
	"fmt"
	"runtime/pprof"
	"runtime/trace"

	"github.com/ambit-go/ambit/async/internal/tree"
	"github.com/ambit-go/ambit/async/picture"
)

// This file shows tasks to the profiles and traces of the runtime.

// Profile puts the names of tasks into profiles and execution traces, for all that is started in
// the scope.
//
//	err := async.Scope(ctx, serve, async.Profile())
//
// # Details
//
// Each handler, and the body of each scope inside, runs under the pprof labels async.task, its name, and async.scope,
// the name of the nearest scope with a name around it. Digits and long hexadecimal numbers are
// written as #, so there are no more labels than kinds of tasks. CPU profiles, the profile of
// goroutines and tracebacks of the runtime show them. Labels of the ctx that a task was started with
// stay; goroutines that the handler starts inherit all of them. When a body has returned its goroutine
// has the labels of the ctx that the scope was opened with.
//
// While an execution trace is taken, with [trace.Start] or a flight recorder, a handler is a region,
// a scope with a name is a task of the trace, and a handler that was told to stop writes the type of the
// cause to its log when it returns. Profile starts no trace and no profile.
//
// Each task in the scope costs 14 allocations and 710 bytes more, which are garbage when it has ended. Without the
// option there is no cost.
func Profile() ScopeOption {
	p := &profile{labels: make(map[labelled]pprof.LabelSet)}
	return scopeOption(func(s *tree.ScopeOptions) { s.Profile = &tree.Observer{Begin: p.begin} })
}

// A profile keeps the labels of the names that it has seen.
type profile struct {
	mu     tree.Mutex
	labels map[labelled]pprof.LabelSet // guarded by mu
}

// labelled is what a set of labels is kept by.
type labelled struct{ task, scope string }

// mostLabels bounds the sets that are kept. More are made whenever they are needed.
const mostLabels = 1 << 10

// begin labels the goroutine of the task of e, which is about to call the handler. The goroutine has the labels of
// around when that has returned.
func (p *profile) begin(ctx, around context.Context, e tree.Event) (context.Context, tree.Ends) {
	ctx = pprof.WithLabels(ctx, p.labelsOf(labelled{e.Task, tree.ScopeName(e.Of)}))
	pprof.SetGoroutineLabels(ctx)
	unlabel := func(*tree.StopError) { pprof.SetGoroutineLabels(around) }
	if !trace.IsEnabled() {
		return ctx, tree.Ends{Returned: unlabel}
	}
	var ends tree.Ends
	name := picture.Alike(e.Task)
	if e.Of.Kind == tree.KindScope && tree.IsNamed(e.Of) {
		inTask, task := trace.NewTask(ctx, name)
		ctx, ends.Ended = inTask, task.End
	}
	region := trace.StartRegion(ctx, name)
	ends.Returned = func(stop *tree.StopError) {
		if stop != nil {
			trace.Log(ctx, "async.stopped", fmt.Sprintf("%T", stop.Cause))
		}
		region.End()
		unlabel(stop)
	}
	return ctx, ends
}

func (p *profile) labelsOf(key labelled) pprof.LabelSet {
	p.mu.Lock()
	defer p.mu.Unlock()
	set, ok := p.labels[key]
	if ok {
		return set
	}
	labels := []string{"async.task", picture.Alike(key.task)}
	if key.scope != "" {
		labels = append(labels, "async.scope", picture.Alike(key.scope))
	}
	set = pprof.Labels(labels...)
	if len(p.labels) < mostLabels {
		p.labels[key] = set
	}
	return set
}
