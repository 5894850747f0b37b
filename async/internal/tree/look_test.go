package tree

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// A field is a root with members that nothing runs in.
type field struct{ r *Root }

func newField() field { return field{newRoot(context.Background(), nil, nil)} }

func (f field) add(kind Kind) *Task {
	t := &Task{Kind: kind, Owner: &f.r.Scope}
	f.r.Scope.Add(t)
	return t
}

func (f field) leave(t *Task) { f.r.Scope.Leave(t) }

// look returns how often each member was seen, by one look, and calls between after each slice.
func (f field) look(t *testing.T, between func()) map[*Task]int {
	seen := make(map[*Task]int)
	var v View
	var c Cursor
	for more := true; more; between() {
		more = LookAt(&f.r.t, &v, &c)
		require.LessOrEqual(t, len(v.Members), MostSeen, "of one slice")
		for _, m := range v.Members {
			seen[m.Task]++
			require.Equal(t, m.Ordinal, m.Task.ordinal)
		}
	}
	return seen
}

// Whatever lives through a look is seen once; members leave and come around the place where the look
// stands, most of all the one that it stands on.
func TestALookSeesOnceWhatLivesThroughIt(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		f := newField()
		var stays, goes []*Task
		for range 10 * MostSeen {
			kind := KindGo
			if rng.IntN(4) == 0 {
				kind = KindPromise
			}
			if one := f.add(kind); rng.IntN(3) == 0 {
				stays = append(stays, one)
			} else {
				goes = append(goes, one)
			}
		}
		gone := make(map[*Task]bool)
		seen := f.look(t, func() {
			for range rng.IntN(2 * MostSeen) {
				if len(goes) == 0 {
					break
				}
				i := rng.IntN(len(goes))
				if rng.IntN(2) == 0 {
					i = len(goes) - 1 // near to where the look stands
				}
				f.leave(goes[i])
				gone[goes[i]] = true
				goes = slices.Delete(goes, i, i+1)
			}
			for range rng.IntN(MostSeen) {
				goes = append(goes, f.add(KindGo))
			}
		})
		for _, one := range stays {
			require.Equal(t, 1, seen[one], "seed %d", seed)
		}
		for _, n := range seen {
			require.Equal(t, 1, n, "seed %d", seed)
		}
	}
}

// The member that the look stands on leaves, and all that were seen before it.
func TestALookGoesOnWhenAllThatItHasSeenHaveLeft(t *testing.T) {
	f := newField()
	var all []*Task
	for range 3 * MostSeen {
		all = append(all, f.add(KindGo))
	}
	seen := make(map[*Task]bool)
	var v View
	var c Cursor
	for more := true; more; {
		more = LookAt(&f.r.t, &v, &c)
		for _, m := range v.Members {
			require.False(t, seen[m.Task])
			seen[m.Task] = true
			f.leave(m.Task)
			f.add(KindGo)
		}
	}
	require.Len(t, seen, len(all), "what came meanwhile is too new")
	for _, one := range all {
		require.True(t, seen[one])
	}
}

func TestALookOfFewMembers(t *testing.T) {
	for n := range 4 {
		f := newField()
		var all []*Task
		for range n {
			all = append(all, f.add(KindGo))
		}
		require.Len(t, f.look(t, func() {}), n)
		for _, one := range all {
			f.leave(one)
		}
		require.Empty(t, f.look(t, func() {}), "they have left")
	}
}

// Two looks at a time do not disturb each other, and a scope may end under one.
func TestLooksOfAScopeThatEnds(t *testing.T) {
	f := newField()
	for range 3 * MostSeen {
		f.add(KindGo)
	}
	var inner map[*Task]int
	outer := f.look(t, func() {
		if inner == nil {
			inner = make(map[*Task]int)
			inner = f.look(t, func() {})
		}
		f.r.Scope.Mu.Lock()
		f.r.Scope.Ended = true
		f.r.Scope.Mu.Unlock()
	})
	require.Equal(t, inner, outer)
}

func TestALookMakesNothing(t *testing.T) {
	f := newField()
	var all []*Task
	for range 2 * MostSeen {
		all = append(all, f.add(KindGo))
	}
	var v View
	LookAt(&f.r.t, &v, new(Cursor))
	c := Cursor{anchors: make([]*Task, 0, 16)}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		c = Cursor{anchors: c.anchors[:0]}
		for LookAt(&f.r.t, &v, &c) {
		}
	}))
	for _, one := range all {
		require.Nil(t, one.Inner.Load(), "no inner scope was made")
	}
	require.Nil(t, f.r.Scope.std.Load(), "no Done was made")
}

// Ordinals name members for good: each is used once, and grows with the order of the starts.
func TestOrdinalsAreNotUsedAgain(t *testing.T) {
	f := newField()
	last := int64(0)
	for n := range 1000 {
		one := f.add(KindGo)
		_, ordinal := NumbersOf(one)
		require.Greater(t, ordinal, last)
		last = ordinal
		if n%3 > 0 {
			f.leave(one)
		}
	}
	require.Equal(t, int64(1000), last)
}

func TestNumbersOfScopesStay(t *testing.T) {
	a, b := newField(), newField()
	n := NumberOf(&a.r.Scope)
	require.NotEqual(t, n, NumberOf(&b.r.Scope))
	require.Equal(t, n, NumberOf(&a.r.Scope))
	require.Equal(t, int64(1), NumberOf(ProcessRoot().Scope()))
}

// Seeing costs the place for the ordinal while nobody looks; a scope has it from other
// fields. A bound that is exceeded takes the next size class for each task of a program.
func TestWhatSeeingCostsInBytes(t *testing.T) {
	if Exploring || unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("sizes of the default build on 64 bits")
	}
	require.LessOrEqual(t, unsafe.Sizeof(GoTask{}), uintptr(80))
	require.LessOrEqual(t, unsafe.Sizeof(Future{}), uintptr(112))
	require.LessOrEqual(t, unsafe.Sizeof(Scope{}), uintptr(320))
	require.LessOrEqual(t, unsafe.Sizeof(callerScope{}), uintptr(384))
}

func TestNotedWaitsComeAndGo(t *testing.T) {
	f := newField()
	one := f.add(KindGo)
	texts := func() (all []string) {
		var v View
		LookAt(one, &v, new(Cursor))
		for _, w := range v.Waits.All {
			all = append(all, w.For.Text)
		}
		return all
	}
	var a, b, c Noted
	a.End() // nothing has begun
	a.Begin(one, nil, "a")
	b.Begin(one, nil, "b")
	c.Begin(one, nil, "c")
	require.Equal(t, []string{"c", "b", "a"}, texts())
	b.End()
	require.Equal(t, []string{"c", "a"}, texts())
	c.End()
	c.End()
	require.Equal(t, []string{"a"}, texts())
	b.Begin(one, nil, "b again")
	a.End()
	require.Equal(t, []string{"b again"}, texts())
	b.End()
	require.Empty(t, texts())
}
