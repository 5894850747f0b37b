package asyncz

import (
	"time"

	"github.com/ambit-go/ambit/async/picture"
)

// This file knows how old tasks are, although nobody times their starts: each look notes how many tasks were ever
// started in each scope. A task whose ordinal is not above that number was there then; one above it came later.

// An age is what is known of how old a task is. AtMost 0: nothing is known of that.
type age struct{ AtLeast, AtMost time.Duration }

// A mark is how many tasks had ever been started in a scope by the look that began and ended then.
type mark struct {
	began, ended time.Time
	started      int64
}

// marks are those of one scope, the oldest first.
type marks struct {
	all  []mark
	seen int64 // the number of the look that met the scope last
}

// ages are the marks of all scopes.
type ages struct {
	scopes map[int64]*marks
	look   int64
}

// Bounds of what is kept.
const (
	mostMarks  = 16
	mostScopes = 10_000
)

// note marks all scopes of pic. A scope that is not met any more is dropped: nothing will be asked of it.
func (a *ages) note(pic *picture.Tree) {
	a.look++
	began := pic.At.Add(-pic.Took)
	if pic.Started > 0 { // else it is not known: the picture is of a task
		a.mark(pic.Root, mark{began, pic.At, pic.Started})
	}
	for i := range pic.Nodes {
		if n := &pic.Nodes[i]; n.Scope != 0 && n.Scope != pic.Root {
			a.mark(n.Scope, mark{began, pic.At, n.Started})
		}
	}
	for number, m := range a.scopes {
		if m.seen != a.look {
			delete(a.scopes, number)
		}
	}
}

func (a *ages) mark(scope int64, m mark) {
	s := a.scopes[scope]
	if s == nil {
		if len(a.scopes) >= mostScopes {
			return
		}
		s = new(marks)
		a.scopes[scope] = s
	}
	s.seen = a.look
	s.add(m)
}

// add adds m. If there are more than mostMarks the one goes that is missed least: whose neighbours are nearest to
// each other for their age. So the distances grow with the age, and what is known of an old task is about as exact
// as what is known of a young one.
func (s *marks) add(m mark) {
	if n := len(s.all); n > 1 && s.all[n-1].started == m.started && s.all[n-2].started == m.started {
		s.all[n-1] = m // nothing was started in between
		return
	}
	if s.all = append(s.all, m); len(s.all) <= mostMarks {
		return
	}
	least, at := 0.0, 0
	for i := 1; i < len(s.all)-1; i++ {
		gap := s.all[i+1].ended.Sub(s.all[i-1].ended)
		old := m.ended.Sub(s.all[i].ended) + 1
		if missed := float64(gap) / float64(old); at == 0 || missed < least {
			least, at = missed, i
		}
	}
	s.all = append(s.all[:at], s.all[at+1:]...)
}

// of returns what is known at now of the age of a task.
func (a *ages) of(id picture.ID, now time.Time) (out age) {
	s := a.scopes[id.Scope]
	if s == nil {
		return age{}
	}
	for _, m := range s.all {
		if id.Ordinal <= m.started {
			out.AtLeast = max(now.Sub(m.ended), 0)
			break
		}
		out.AtMost = max(now.Sub(m.began), 1)
	}
	return out
}
