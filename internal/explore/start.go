package explore

import (
	"fmt"
	"runtime"
)

// This file is how a new goroutine says what it is.

// Born gives object its number now, on the goroutine that has made it, so that
// a goroutine that begins with it has the same place in every replay.
func Born(object any) {
	if w, _ := here(); w != nil {
		w.mu.Lock()
		w.idLocked(object)
		w.mu.Unlock()
	}
}

// Start is called first by a new goroutine, which works for object, and is a
// point. The function that it returns is to be deferred: it makes a panic that
// nobody has recovered a failure of the schedule.
func Start(name string, object any) (end func()) {
	w, _ := here()
	if w == nil {
		return func() {}
	}
	id := getg()
	w.mu.Lock()
	g := w.newLocked(id)
	g.key = key{object: w.idLocked(object), what: name}
	g.name = fmt.Sprintf("%s%d", name, g.key.object)
	w.mu.Unlock()
	w.stop(g, op{kind: opPoint, what: "start"})
	return func() {
		if v := recover(); v != nil {
			w.fail(&panicked{g.name, v, stack()})
		}
		w.mu.Lock()
		delete(w.gors, id)
		w.mu.Unlock()
	}
}

// panicked is the failure of a goroutine that has panicked.
type panicked struct {
	who   string
	value any
	stack string
}

func (p *panicked) Error() string { return fmt.Sprintf("%s panicked: %v\n%s", p.who, p.value, p.stack) }

func stack() string {
	buf := make([]byte, 1<<14)
	return string(buf[:runtime.Stack(buf, false)])
}
