package taskqueuetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

func pagesOverClasses(f *fixture) {
	var ready, waiting []string
	for class := taskqueue.Priorities - 1; class >= 0; class-- {
		for i := range 3 {
			t := task(fmt.Sprintf("ready %d %d", class, i))
			t.Priority = uint8(class)
			f.add(t)
			ready = append(ready, t.ID)
			t.ID, t.Delay = fmt.Sprintf("waiting %d %d", class, i), time.Hour+time.Duration(i)*time.Second
			f.add(t)
			waiting = append(waiting, t.ID)
		}
	}
	for _, size := range []int{1, 2, 4, 5, 7, 100} {
		for state, want := range map[taskqueue.State][]string{taskqueue.StateReady: ready, taskqueue.StateScheduled: waiting} {
			got, _ := f.list(taskqueue.ListRequest{State: state, Max: size})
			assert.Equal(f, want, got, "%v, pages of %d", state, size)
			back, _ := f.list(taskqueue.ListRequest{State: state, Max: size, Reverse: true})
			slices.Reverse(back)
			assert.Equal(f, want, back, "%v, pages of %d, in the inverse order", state, size)
		}
	}
}

func newestFirst(f *fixture) {
	for i := range 10 {
		f.add(task(fmt.Sprint(i)))
	}
	var want []string
	for i := range 10 {
		run := f.one()
		k := store.Buried
		if i%2 == 1 {
			k = store.Failed
		}
		f.settle(run, k, time.Duration(i)*time.Hour)
		if k == store.Buried {
			want = append([]string{run.ID}, want...)
		}
	}
	for _, size := range []int{1, 2, 5, 100} {
		got, _ := f.list(taskqueue.ListRequest{State: taskqueue.StateDead, Max: size, Reverse: true})
		assert.Equal(f, want, got, "pages of %d", size)
		got, _ = f.list(taskqueue.ListRequest{State: taskqueue.StateRetrying, Max: size, Reverse: true})
		assert.Len(f, got, 5)
	}
	f.add(task("x"), task("y"))
	require.Len(f, f.claim(2), 2)
	got, _ := f.list(taskqueue.ListRequest{State: taskqueue.StateRunning, Max: 1, Reverse: true})
	assert.Len(f, got, 2)
	got, _ = f.list(taskqueue.ListRequest{State: taskqueue.StateDone, Reverse: true})
	assert.Empty(f, got)
}

func pageOfLargePayloads(f *fixture) {
	want := f.large()
	for _, reverse := range []bool{false, true} {
		got, pages := f.list(taskqueue.ListRequest{State: taskqueue.StateReady, Reverse: reverse})
		if reverse {
			slices.Reverse(got)
		}
		assert.Equal(f, want, got)
		assert.Greater(f, pages, 1, "10 MiB in one page")
	}
}
