package taskqueuetest

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// long is until when the tests of hints wait: one that does not come in time fails
// them, however slow the machine is.
const long = 30 * time.Second

// quiet claims until nothing is heard any more of what was before, and returns what
// the last claim has said.
func (f *fixture) quiet() taskqueue.Claimed {
	f.Helper()
	for range 5 { // a store may have to begin to listen, and says then that it may have missed something
		got := f.asks(10)
		require.NoError(f, f.s.Wait(ctx, queue, got.Seen, time.Now().Add(20*time.Millisecond)))
	}
	return f.asks(10)
}

// soon waits for a hint that is to come, or has come.
func (f *fixture) soon(seen uint64) {
	f.Helper()
	begin := time.Now()
	require.NoError(f, f.s.Wait(ctx, queue, seen, begin.Add(long)))
	assert.Less(f, time.Since(begin), long)
}

// A worker that was told that nothing is due, and then goes to wait.
func hintBeforeTheWait(f *fixture) {
	later := task("later")
	later.Delay = time.Hour
	f.add(later)
	told := f.quiet()
	require.Empty(f, told.Tasks)
	f.add(task("a"))
	f.soon(told.Seen)
	assert.Len(f, f.claim(10), 1)

	told = f.quiet()
	assert.True(f, f.act("later", store.ActPromote))
	f.soon(told.Seen)
	run := f.one()

	told = f.quiet()
	f.settle(run, store.Released, 0)
	f.soon(told.Seen)
}

// The next task of a queue that is full may start when one has ended.
func hintWhenThereIsRoom(f *fixture) {
	f.configure(func(s *taskqueue.Settings) { s.Concurrency = 1 })
	f.add(task("a"), task("b"))
	run := f.one()
	told := f.quiet()
	require.Empty(f, told.Tasks)
	f.settle(run, store.Succeeded, 0)
	f.soon(told.Seen)
	assert.Len(f, f.claim(10), 1)
}

func hintWhenResumed(f *fixture) {
	f.configure(func(s *taskqueue.Settings) { s.Paused = true })
	f.add(task("a"))
	told := f.quiet()
	require.Empty(f, told.Tasks)
	f.configure(func(s *taskqueue.Settings) { s.Paused = false })
	f.soon(told.Seen)
	assert.Len(f, f.claim(10), 1)
}
