package survey

import (
	"reflect"

	"github.com/ambit-go/ambit/async/internal/tree"
	"github.com/ambit-go/ambit/async/part"
)

// This file is about what other packages show: parts, and executors that are places in them.

// places are the parts of other packages, and which tasks stand in them.
type places struct {
	s     *survey
	parts []part.Part
	index map[part.Part]int
	in    []int64       // by part: the number of the scope that it stands in; 0: it was found by a task only
	views []part.View   // by part
	of    map[int32]int // by task: the part that is its executor
	runs  [][]int32     // by part: the tasks that run in it
}

// placesOf asks the parts of all scopes, and the executors of tasks, for parts.
func (s *survey) placesOf() *places {
	p := &places{s: s, index: make(map[part.Part]int), of: make(map[int32]int)}
	for _, r := range s.parts {
		x := r.part
		if place, ok := x.(part.Place); ok { // it stands for another
			x = place.Part()
		}
		if one, ok := x.(part.Part); ok {
			p.in[p.add(one)] = r.number
		}
	}
	for i := range s.waits {
		if other := s.waits[i].For; other != nil {
			if one, ok := other.Part.(part.Part); ok {
				p.add(one)
			}
		}
	}
	for i := range s.tasks {
		t := &s.tasks[i]
		if !t.special {
			continue
		}
		place, ok := tree.ExecutorOf(t.t).(part.Place)
		if !ok {
			continue
		}
		n := p.add(place.Part())
		p.of[int32(i)] = n
		if t.t.State.Load() == tree.StateRunning || t.t.State.Load() == tree.StateJoining {
			p.runs[n] = append(p.runs[n], int32(i))
		}
	}
	for _, one := range p.parts {
		p.views = append(p.views, ask(one))
	}
	return p
}

// add returns the index of a part. Parts that cannot be compared are all different.
func (p *places) add(one part.Part) int {
	if reflect.ValueOf(one).Comparable() {
		if i, ok := p.index[one]; ok {
			return i
		}
		p.index[one] = len(p.parts)
	}
	p.parts, p.in, p.runs = append(p.parts, one), append(p.in, 0), append(p.runs, nil)
	return len(p.parts) - 1
}

// ask asks a part how it stands. A part may be a user's.
func ask(one part.Part) (v part.View) {
	defer func() {
		if recover() != nil {
			v = part.View{Kind: "part", State: "it panics when it is looked at"}
		}
	}()
	return one.Look()
}

// isFull reports whether all places of part p are taken by tasks that are known.
func (p *places) isFull(i int) bool {
	v := &p.views[i]
	return v.Places > 0 && v.Running == v.Places && len(p.runs[i]) == v.Places
}

// lasts reports whether part i is still full, and none of runs has ended.
func (p *places) lasts(i int, runs []int32) bool {
	v := ask(p.parts[i])
	return v.Places == len(runs) && v.Running == v.Places
}
