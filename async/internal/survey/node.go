package survey

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async/internal/crash"
	"github.com/ambit-go/ambit/async/internal/tree"
	"github.com/ambit-go/ambit/async/part"
	"github.com/ambit-go/ambit/async/picture"
)

// This file draws one node.

// node draws task i.
func (d *drawing) node(i int32) picture.Node {
	t := &d.tasks[i]
	name := d.names.all[t.name]
	n := picture.Node{
		ID: d.id(i), Kind: picture.Kind(t.kind.String()), Name: name.text, Place: name.place,
		State: states[t.state+1], Told: d.told(t.told), Waiters: int(t.waiters),
		Limit: d.limit(i), Restart: d.restart(i), Daemon: t.excused,
	}
	if ago, ok := tree.BeganAt(t.t); ok {
		n.Begun = time.Now().Add(-ago)
	}
	if f := future(t.t); f != nil && t.state != int8(tree.StateDone) {
		n.Sought = f.Sought()
	}
	if t.scope >= 0 {
		sc := &d.scopes[t.scope]
		n.Scope, n.Live, n.Started, n.Unclaimed = d.number(i), int(sc.live), sc.started, int(sc.unclaimed)
	}
	d.waitsOf(i, &n)
	if n.Restart != nil && n.State == picture.StateRunning && len(n.Waits) > 0 && n.Waits[0].How == picture.WaySleep {
		n.State = picture.StatePausing
	}
	return n
}

// waitsOf draws what task i waits for.
func (d *drawing) waitsOf(i int32, n *picture.Node) {
	t := &d.tasks[i]
	add := func(w picture.Wait) { n.Waits = append(n.Waits, w) }
	const once = 1 // a task queues once, and joins once
	if t.state == int8(tree.StateQueued) {
		p, inPart := d.places.of[i]
		switch {
		case d.turns[i] != nil:
			add(picture.Wait{How: picture.WayLimit, Mark: once})
		case inPart:
			add(picture.Wait{How: picture.WayPart, Part: p + 1, Mark: once})
		case tree.ExecutorOf(t.t) != nil:
			add(picture.Wait{How: picture.WayExecutor, Mark: once})
		}
		return
	}
	if t.scope < 0 {
		return
	}
	sc := &d.scopes[t.scope]
	for n := sc.wait; n < sc.over; n++ {
		add(d.drawn(n))
	}
	if d.turns[i] != nil { // its wait is over, and it wants its slot back
		add(picture.Wait{How: picture.WayLimit})
	}
	if len(n.Waits) == 0 && sc.joins {
		add(picture.Wait{How: picture.WayJoin, Mark: once})
	}
}

// drawn draws wait n.
func (d *drawing) drawn(n int32) picture.Wait {
	w := &d.waits[n]
	out := picture.Wait{Left: w.Left, Mark: w.Mark(), Own: w.Deaf}
	switch w.Kind {
	case tree.ForTime:
		out.How = picture.WaySleep
	case tree.ForOthers:
		out.How, out.Text = picture.WayPart, w.For.Text
		if p, ok := w.For.Part.(part.Part); ok {
			out.Part = d.places.add(p) + 1
		}
	default:
		out.How = picture.WayAwait
		on := d.on.by(n)
		if out.Gone = on < 0; out.Gone {
			out.Name = d.names.all[d.names.of(w.On())].text
			break
		}
		out.On, out.Name = d.id(on), d.names.all[d.tasks[on].name].text
	}
	return out
}

// told draws why something was told to stop.
func (d *drawing) told(stop *tree.StopError) *picture.Told {
	if stop == nil {
		return nil
	}
	told := &picture.Told{Type: typeOf(stop.Cause)}
	if d.Texts {
		told.Cause = textOf(stop.Cause)
	}
	return told
}

// sentinels are causes that have a name, which says more than their type.
var sentinels = []struct {
	err  error
	name string
}{
	{tree.ErrScopeEnded, "async.ErrScopeEnded"}, {tree.ErrDismissed, "async.ErrDismissed"},
	{tree.ErrDecided, "async.ErrDecided"}, {tree.ErrShutdown, "async.ErrShutdown"},
	{tree.ErrAbandoned, "async.ErrAbandoned"}, {tree.ErrGoexit, "async.ErrGoexit"},
	{context.Canceled, "context.Canceled"}, {context.DeadlineExceeded, "context.DeadlineExceeded"},
}

// typeOf returns the type of err, or its name if it is an error of ours that has one. It calls no
// method of err.
func typeOf(err error) string {
	name := fmt.Sprintf("%T", err)
	if !strings.HasPrefix(name, "*errors.") && !strings.HasPrefix(name, "context.") {
		return name
	}
	for _, s := range sentinels {
		if err == s.err {
			return s.name
		}
	}
	return name
}

// mostText is how long the text of an error may be.
const mostText = 200

// textOf returns the first line of the text of err. It calls a method of a user's error: it is for
// those who have asked for texts, and no lock is held.
func textOf(err error) string {
	text, _, _ := strings.Cut(crash.Text(err), "\n")
	if len(text) > mostText {
		text = strings.ToValidUTF8(text[:mostText], "") + "…"
	}
	return strings.ToValidUTF8(text, "�")
}

// limit draws the Limit that task i has brought, nil if it has none.
func (d *drawing) limit(i int32) *picture.Limit {
	t := &d.tasks[i]
	if t.scope < 0 || !d.scopes[t.scope].limits {
		return nil
	}
	l, size, held := tree.LimitIn(t.t)
	if l == nil {
		return nil
	}
	out := &picture.Limit{Slots: size, Held: held, Queued: d.queued[l]}
	for _, h := range d.holders[l] {
		if len(out.Holders) < mostHeld {
			out.Holders = append(out.Holders, d.id(h))
		}
	}
	return out
}

// restart draws how often task i has failed, nil if it has not.
func (d *drawing) restart(i int32) *picture.Restart {
	t := &d.tasks[i]
	if !t.special {
		return nil
	}
	r, ok := t.t.Self.(interface {
		Failed() (failures int, last error)
	})
	if !ok {
		return nil
	}
	failures, last := r.Failed()
	if failures == 0 {
		return nil
	}
	out := &picture.Restart{Failures: failures, Last: typeOf(last)}
	if d.Texts {
		out.Text = textOf(last)
	}
	return out
}

// parts draws the parts of other packages.
func (d *drawing) parts() {
	for i, v := range d.places.views {
		one := picture.Part{
			Scope: d.places.in[i], Kind: v.Kind, Name: v.Name,
			Places: v.Places, Queued: v.Queued, Active: v.Running, State: v.State,
		}
		for _, t := range d.places.runs[i] {
			if len(one.Runs) < mostHeld {
				one.Runs = append(one.Runs, d.id(t))
			}
		}
		d.pic.Parts = append(d.pic.Parts, one)
	}
}
