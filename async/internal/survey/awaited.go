package survey

import "github.com/ambit-go/ambit/async/internal/tree"

// This file finds the tasks that others wait for.

// awaited says of each wait for a future which task that is of.
type awaited struct {
	numbers map[*tree.Task]int32 // of what is waited for
	which   []int32              // by wait: the number of what it is for; -1: it is for no future
	tasks   []int32              // by that number: the task; -1: it is not in the tree
}

// awaited looks through all waits and tasks, each once.
func (s *survey) awaited() *awaited {
	a := &awaited{numbers: make(map[*tree.Task]int32), which: make([]int32, len(s.waits))}
	var last *tree.Task // most often the next wait is for the same
	number := int32(-1)
	for i := range s.waits {
		on := s.waits[i].On()
		if on != last {
			last, number = on, a.number(on)
		}
		a.which[i] = number
	}
	for i := range s.tasks {
		if t := &s.tasks[i]; t.future {
			if n, wanted := a.numbers[t.t]; wanted {
				a.tasks[n] = int32(i)
			}
		}
	}
	return a
}

// number returns the number of a task that is waited for; -1 for nil.
func (a *awaited) number(t *tree.Task) int32 {
	if t == nil {
		return -1
	}
	n, ok := a.numbers[t]
	if !ok {
		n = int32(len(a.tasks))
		a.numbers[t], a.tasks = n, append(a.tasks, -1)
	}
	return n
}

// by returns the task for which wait n is; -1: it is for no future, or for one that is not in the tree.
func (a *awaited) by(n int32) int32 {
	if a.which[n] < 0 {
		return -1
	}
	return a.tasks[a.which[n]]
}
