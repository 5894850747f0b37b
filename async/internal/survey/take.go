package survey

import (
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/ambit-go/ambit/async/internal/tree"
	"github.com/ambit-go/ambit/async/picture"
)

// Take looks at the tree and returns a picture of it.
func Take(o Options) *picture.Tree {
	if o.Top == nil {
		o.Top = tree.ProcessRoot()
	}
	if o.AtMost <= 0 {
		o.AtMost = mostNodes
	}
	s := &survey{Options: o, began: time.Now(), left: make(map[*tree.Scope]bool)}
	s.walk(o.Top)
	k := s.knot()
	if o.Stacks > 0 {
		k.stacksOf()
	}
	k.find()
	d := &drawing{knot: k, pic: &picture.Tree{
		At: time.Now(), Process: filepath.Base(os.Args[0]), PID: os.Getpid(), Goroutines: runtime.NumGoroutine(),
		Cut: picture.Cut{Unreached: s.unreached, TimeUp: s.timeUp},
	}}
	d.draw()
	d.pic.Took = time.Since(s.began)
	return d.pic
}

func (d *drawing) draw() {
	d.count()
	d.rings()
	d.problems()
	d.choose()
	d.parts()
	d.nodes()
	d.groups()
	d.stacksIn()
}

// count counts the tasks, and of each the waits for it.
func (d *drawing) count() {
	d.pic.Live = len(d.tasks) - 1
	top := &d.tasks[0]
	if top.kind == tree.KindRoot {
		d.pic.Root, d.pic.Started = tree.NumberOf(top.t.Scope()), d.scopes[0].started
	} else {
		d.pic.Live++
		d.pic.Root, top.ordinal = tree.NumbersOf(top.t)
		top.name = d.names.of(top.t)
		top.state = int8(top.t.State.Load())
	}
	for i := range int32(len(d.waits)) {
		if on := d.on.by(i); on >= 0 {
			d.tasks[on].waiters++
		}
	}
}
