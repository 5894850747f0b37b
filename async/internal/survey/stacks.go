package survey

import (
	"fmt"
	"strings"

	"github.com/ambit-go/ambit/async/internal/look"
	"github.com/ambit-go/ambit/async/internal/tree"
	"github.com/ambit-go/ambit/async/picture"
)

// This file is about stacks, if they were asked for. To find them stops the world, once.
//
// A stack says what nothing else does: which goroutine makes a wait. A task that holds a slot and waits
// with the context of another, for a task that queues for that slot, lends nothing, and neither goes
// on. By the ctx it is the other that waits. The traceback of the holder shows the very wait.

// stacksOf looks for the stacks of stragglers, and of those that hold the slots of full limits.
func (k *knot) stacksOf() {
	var all []*tree.Task
	add := func(i int32) {
		if len(all) < k.Stacks {
			all = append(all, k.tasks[i].t)
		}
	}
	for i := range int32(len(k.tasks)) {
		if k.isStraggler(i) {
			add(i)
		}
	}
	for l := range k.queued {
		if k.isFull(l) {
			for _, i := range k.holders[l] {
				add(i)
			}
		}
	}
	if len(all) > 0 {
		k.stacks = look.For(all, tree.ShownBy...)
		k.borrow()
	}
}

// borrow finds the waits that holders of slots make with contexts of others.
func (k *knot) borrow() {
	waits := make(map[string]borrowed)
	for i := range k.tasks {
		in := k.waitsIn(k.tasks[i].scope)
		for n := range in {
			if w := &in[n]; w.Kind == tree.ForFuture {
				waits[w.InTraceback()] = borrowed{k.scopes[k.tasks[i].scope].wait + int32(n), int32(i)}
			}
		}
	}
	for l := range k.queued {
		for _, i := range k.holders[l] {
			_, rest, parked := strings.Cut(k.stacks.StackOf(k.tasks[i].t), parkedIn)
			if args, _, more := strings.Cut(rest, ", "); parked && more {
				if b, ok := waits[parkedIn+args+", "]; ok && b.of != i {
					k.borrowed[i] = b
				}
			}
		}
	}
}

const parkedIn = "sync.runtime_notifyListWait("

// stacksIn adds stacks to the problems.
func (d *drawing) stacksIn() {
	if d.knot.stacks == nil {
		return
	}
	for n := range d.pic.Problems {
		p, i := &d.pic.Problems[n], d.found[n]
		switch p.Kind {
		case picture.ProblemStraggler:
			p.Text = frames(d.knot.stacks.StackOf(d.tasks[i].t))
		case picture.ProblemFull:
			p.Text = d.holdersText(i)
		}
	}
}

// holdersText tells what the holders of the limit of task i do.
func (d *drawing) holdersText(i int32) string {
	var text strings.Builder
	l, _, _ := tree.LimitIn(d.tasks[i].t)
	for _, h := range d.holders[l] {
		stack := d.knot.stacks.StackOf(d.tasks[h].t)
		if stack == "" {
			continue
		}
		fmt.Fprintf(&text, "#%v %s", d.id(h), d.names.all[d.tasks[h].name].text)
		if b, ok := d.borrowed[h]; ok {
			of := d.names.all[d.tasks[b.of].name].text
			fmt.Fprintf(&text, " waits with the context of #%v %s, and so lends no slot", d.id(b.of), of)
		}
		text.WriteString("\n" + frames(stack))
	}
	return text.String()
}

// mostFrames is how many functions of a stack are told.
const mostFrames = 8

// frames returns the functions of a traceback from the innermost one to that of the task, less those of
// package async that nobody has called by name, each with its place, a line each.
func frames(stack string) string {
	var b strings.Builder
	lines := strings.Split(stack, "\n")
	for n, i := 0, 1; i+1 < len(lines) && n < mostFrames; i += 2 {
		function, place := lines[i], strings.TrimSpace(lines[i+1])
		if strings.HasPrefix(function, "created by ") || strings.Contains(function, "tree.(*Task).Main") {
			break
		}
		if strings.Contains(function, "ambit/async/internal/") || strings.Contains(function, "ambit/async.(*job") ||
			strings.HasPrefix(function, "sync.") {
			continue
		}
		function = function[strings.LastIndexByte(function, '/')+1:]
		if open := strings.LastIndexByte(function, '('); open > 0 {
			function = function[:open]
		}
		place, _, _ = strings.Cut(place, " +0x")
		fmt.Fprintf(&b, "  %s  %s\n", function, shortPlace(place))
		n++
	}
	return b.String()
}
