package kvqueuetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// changes collects what a watch shows until it has shown a number of changes.
func (f *fixture) changes(n int, after kvqueue.Rev, prefixes ...[]byte) (events []kvqueue.Event) {
	f.Helper()
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	for e, err := range f.kv.Watch(ctx, after, prefixes...) {
		require.NoError(f, err)
		if events = append(events, e); len(events) == n {
			return events
		}
	}
	f.Fatalf("the watch has shown %d changes of %d", len(events), n)
	return nil
}

func (f *fixture) texts(events []kvqueue.Event) []string {
	texts := []string{}
	for _, e := range events {
		text := fmt.Sprintf("%s=%s", string(e.Key)[len(f.root):], e.Value)
		if e.Deleted {
			text = string(e.Key)[len(f.root):] + " is gone"
		}
		texts = append(texts, text)
	}
	return texts
}

func watchOrder(f *fixture) {
	_, rev := f.read(f.span("a", "b"))
	const changes = 200
	want, deleted := map[kvqueue.Rev]string{}, 0
	var all sync.WaitGroup
	all.Go(func() {
		for i := range changes {
			w, text := f.put("k", fmt.Sprint(i)), fmt.Sprintf("k=%d", i)
			if i%3 == 2 {
				w, text = f.del("k"), "k is gone"
				deleted++
			}
			got, err := f.kv.Commit(f.ctx, nil, []kvqueue.Write{w})
			if !assert.NoError(f, err) {
				return
			}
			want[got] = text
		}
	})
	events := f.last(fmt.Sprintf("k=%d", changes-1), rev, f.key("k"))
	all.Wait()
	for i, text := range f.texts(events) { // a put that another change has overtaken may be left out
		assert.Equal(f, want[events[i].Rev], text)
		assert.Greater(f, events[i].Rev, rev)
		if rev = events[i].Rev; events[i].Deleted {
			deleted--
		}
	}
	assert.Zero(f, deleted, "a deletion is not left out")
}

func watchPrefixes(f *fixture) {
	_, rev := f.read(f.span("a", "b"))
	f.must(f.put("a", "0"), f.put("a/1", "1"), f.put("b/1", "0"), f.put("c/1", "2"))
	f.must(f.put("a0", "0"), f.put("c/", "3"), f.put("c", "0"))
	f.must(f.del("c/1"), f.del("b/1"), f.del("a/none"))
	f.must(f.put("a/2", "4"), f.put("c/last", "5"))
	// Prefixes may overtake each other, so the watch goes on to the last change of each.
	events := f.through([]string{"a/2=4", "c/last=5"}, rev, f.key("a/"), f.key("c/"))
	var a, c []kvqueue.Event
	for _, e := range events {
		if e.Key[len(f.root)] == 'a' {
			a = append(a, e)
		} else {
			c = append(c, e)
		}
	}
	assert.Equal(f, []string{"a/1=1", "a/2=4"}, f.texts(a))
	if f.texts(c[:1])[0] == "c/1=2" { // another change has overtaken it
		c = c[1:]
	}
	assert.Equal(f, []string{"c/=3", "c/1 is gone", "c/last=5"}, f.texts(c))
}

func watchFromThePast(f *fixture) {
	f.must(f.put("k", "1"))
	second := f.must(f.put("k", "2"))
	third := f.must(f.put("other", "3"), f.put("k", "3"))
	f.must(f.del("k"))
	f.must(f.put("k2", "4"))
	events := f.last("k2=4", second, f.key("k"))
	assert.Subset(f, []string{"k=3", "k is gone", "k2=4"}, f.texts(events))
	assert.Contains(f, f.texts(events), "k is gone")
	f.must(f.put("k", "5"))
	assert.Equal(f, []string{"k is gone", "k2=4", "k=5"}, f.texts(f.changes(3, third, f.key("k"))))
}

// last collects the events of a watch until it has shown one.
func (f *fixture) last(text string, after kvqueue.Rev, prefixes ...[]byte) []kvqueue.Event {
	f.Helper()
	return f.through([]string{text}, after, prefixes...)
}

// through collects the events of a watch until it has shown all of some.
func (f *fixture) through(missing []string, after kvqueue.Rev, prefixes ...[]byte) (events []kvqueue.Event) {
	f.Helper()
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	for e, err := range f.kv.Watch(ctx, after, prefixes...) {
		require.NoError(f, err)
		events = append(events, e)
		text := f.texts(events[len(events)-1:])[0]
		missing = slices.DeleteFunc(missing, func(m string) bool { return m == text })
		if len(missing) == 0 {
			return events
		}
	}
	f.Fatalf("the watch does not show %v", missing)
	return nil
}

func watchEnds(f *fixture) {
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	_, rev := f.read(f.span("a", "b"))
	f.must(f.put("k", "1"))
	for _, err := range f.kv.Watch(ctx, rev, f.key("k")) {
		require.NoError(f, err)
		cancel() // the loop ends by itself
	}
	require.NoError(f, f.ctx.Err())
}

func watchCompacted(f *fixture) {
	c, ok := f.kv.(kvqueue.Compacter)
	if !ok {
		f.Skip("this store is not to be compacted")
	}
	before := f.must(f.put("k", "1"))
	f.must(f.put("k", "2"))
	last := f.must(f.put("k", "3"))
	require.NoError(f, c.Compact(f.ctx, last))
	n := 0
	for _, err := range f.kv.Watch(f.ctx, before, f.key("k")) {
		n++
		require.ErrorIs(f, err, kvqueue.ErrCompacted)
	}
	assert.Equal(f, 1, n, "the error is the last that it yields")
	f.must(f.put("k", "4"))
	assert.Equal(f, []string{"k=4"}, f.texts(f.changes(1, last, f.key("k"))))
	value, _ := f.value("k")
	assert.Equal(f, "4", value)
	if err := c.Compact(f.ctx, before); err != nil && errors.Is(err, kvqueue.ErrUnknown) {
		f.Error("what was compacted already is no answer that was lost")
	}
}
