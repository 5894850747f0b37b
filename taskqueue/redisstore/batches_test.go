package redisstore_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/redisstore"
)

// gate is between the store and the server. Scripts that add tasks wait at it until it
// is opened.
type gate struct {
	arrived chan int      // how many tasks the script has that has arrived
	open    chan struct{} // closed
	lost    error         // unless nil: what the store gets instead of the answer
	seen    sync.Map      // scripts that have arrived before: these are sent again
}

func (g *gate) DialHook(next redis.DialHook) redis.DialHook { return next }

func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "evalsha" {
			return next(ctx, cmd)
		}
		if _, again := g.seen.LoadOrStore(&cmd.Args()[0], true); again {
			_ = next(ctx, cmd)
			cmd.SetErr(g.lost)
			return g.lost
		}
		select {
		case g.arrived <- (len(cmd.Args()) - 4 - cmd.Args()[2].(int)) / 4: // behind the hash, the keys and the channel
		case <-ctx.Done():
			cmd.SetErr(ctx.Err())
			return ctx.Err()
		}
		<-g.open
		err := next(ctx, cmd)
		if g.lost != nil {
			cmd.SetErr(g.lost)
			return g.lost
		}
		return err
	}
}

// gated returns a store with a gate before its server, and a second way to the server.
func gated(t *testing.T) (*redisstore.Store, *gate, *redisstore.Store) {
	t.Helper()
	client := server(t)
	enqueue(t, open(t, client), task("known to the server are the scripts"))
	other := redis.NewClient(client.Options())
	t.Cleanup(func() { assert.NoError(t, other.Close()) })
	g := &gate{arrived: make(chan int), open: make(chan struct{})}
	other.AddHook(g)
	return open(t, other), g, open(t, client)
}

// callers are calls of Enqueue that are on their way.
type callers struct {
	wg sync.WaitGroup
	s  *redisstore.Store
}

// add calls Enqueue, and tells f its error.
func (c *callers) add(ctx context.Context, f func(error), tasks ...taskqueue.Task) {
	c.wg.Go(func() {
		_, err := c.s.Enqueue(ctx, "q", tasks)
		f(err)
	})
}

func fine(t *testing.T) func(error) {
	return func(err error) { assert.NoError(t, err) }
}

// full has both scripts wait at the gate that may be on their way, so what comes now
// waits for them.
func (c *callers) full(t *testing.T, g *gate) {
	t.Helper()
	for _, id := range []string{"first", "second"} {
		c.add(ctx, fine(t), task(id))
		require.Equal(t, 1, <-g.arrived)
	}
}

// join adds calls one after the other: each waits in the store when the next comes.
func (c *callers) join(t *testing.T, f func(error), n int, make func(i int) taskqueue.Task) {
	t.Helper()
	before := redisstore.Waiting(c.s, "q")
	for i := range n {
		c.add(ctx, f, make(i))
		eventually(t, func() bool { return redisstore.Waiting(c.s, "q") == before+i+1 })
	}
}

func numbered(prefix string) func(i int) taskqueue.Task {
	return func(i int) taskqueue.Task { return task(prefix + string(rune('a'+i))) }
}

func TestEnqueuesThatWaitTogetherGoAsOneScript(t *testing.T) {
	s, g, direct := gated(t)
	c := &callers{s: s}
	c.full(t, g)
	c.join(t, fine(t), 5, numbered("x"))
	close(g.open)
	assert.Equal(t, 5, <-g.arrived)
	c.wg.Wait()
	for i := range 5 {
		_, err := direct.Get(ctx, "q", numbered("x")(i).ID)
		assert.NoError(t, err)
	}
}

func TestEnqueuesThatAreTooMuchForOneScriptGoAsSeveral(t *testing.T) {
	s, g, _ := gated(t)
	c := &callers{s: s}
	c.full(t, g)
	c.join(t, fine(t), 9, func(i int) taskqueue.Task {
		large := numbered("x")(i)
		large.Payload = make([]byte, taskqueue.MaxBatchBytes/16-1000)
		return large
	})
	close(g.open)
	assert.ElementsMatch(t, []int{4, 4, 1}, []int{<-g.arrived, <-g.arrived, <-g.arrived})
	c.wg.Wait()
}

func TestTheEndOfAContextTakesATaskBackThatWasNotSent(t *testing.T) {
	s, g, direct := gated(t)
	c := &callers{s: s}
	c.full(t, g)
	c.join(t, fine(t), 1, numbered("x"))
	gone := errors.New("gone")
	ends, end := context.WithCancelCause(ctx)
	left := make(chan struct{})
	c.add(ends, func(err error) {
		assert.Equal(t, gone, err, "it is known that it was not added")
		close(left)
	}, task("taken back"))
	eventually(t, func() bool { return redisstore.Waiting(s, "q") == 2 })
	end(gone)
	<-left
	close(g.open)
	assert.Equal(t, 1, <-g.arrived, "the others go without it")
	c.wg.Wait()
	_, err := direct.Get(ctx, "q", "taken back")
	assert.ErrorIs(t, err, taskqueue.ErrNotFound)
	_, err = direct.Get(ctx, "q", "xa")
	assert.NoError(t, err)
}

func TestTheEndOfAContextDoesNotEndTheScriptOfOthers(t *testing.T) {
	s, g, direct := gated(t)
	c := &callers{s: s}
	c.full(t, g)
	ends, end := context.WithCancel(ctx)
	left := make(chan struct{})
	c.add(ends, func(err error) {
		assert.ErrorIs(t, err, taskqueue.ErrUnknown)
		assert.ErrorIs(t, err, context.Canceled)
		close(left)
	}, task("left"))
	eventually(t, func() bool { return redisstore.Waiting(s, "q") == 1 })
	c.join(t, fine(t), 1, numbered("x"))
	g.open <- struct{}{} // one of the first two
	assert.Equal(t, 2, <-g.arrived)
	end()
	<-left
	close(g.open)
	c.wg.Wait()
	for _, id := range []string{"left", "xa"} {
		_, err := direct.Get(ctx, "q", id)
		assert.NoError(t, err, id)
	}
}

func TestTheErrorOfASharedScriptIsToldToEachWithWhatIsKnown(t *testing.T) {
	lost := &net.OpError{Op: "read", Err: errors.New("connection reset")}
	for name, c := range map[string]struct {
		prepare func(g *gate, client *redis.Client)
		unknown bool
		says    string
	}{
		"the answer is lost": {func(g *gate, _ *redis.Client) { g.lost = lost }, true, "reset"},
		"the server refuses": {func(_ *gate, client *redis.Client) {
			require.NoError(t, client.ConfigSet(ctx, "maxmemory", "1").Err())
		}, false, "OOM"},
	} {
		t.Run(name, func(t *testing.T) {
			client := server(t)
			direct := open(t, client)
			enqueue(t, direct, task("known to the server are the scripts"))
			other := redis.NewClient(client.Options())
			defer func() { assert.NoError(t, other.Close()) }()
			g := &gate{arrived: make(chan int), open: make(chan struct{})}
			other.AddHook(g)
			s := open(t, other)
			calls := &callers{s: s}
			told := func(err error) {
				require.Error(t, err)
				assert.Equal(t, c.unknown, errors.Is(err, taskqueue.ErrUnknown), err)
				assert.Contains(t, err.Error(), c.says)
			}
			for _, id := range []string{"first", "second"} {
				calls.add(ctx, told, task(id))
				require.Equal(t, 1, <-g.arrived)
			}
			calls.join(t, told, 4, numbered("x"))
			c.prepare(g, client)
			close(g.open)
			assert.Equal(t, 4, <-g.arrived)
			calls.wg.Wait()
			_, err := direct.Get(ctx, "q", "xa")
			if c.unknown {
				assert.NoError(t, err, "it was added all the same")
			} else {
				assert.ErrorIs(t, err, taskqueue.ErrNotFound)
			}
		})
	}
}

func TestCloseWaitsForWhatIsBeingSent(t *testing.T) {
	client := server(t)
	s, err := redisstore.New(ctx, client)
	require.NoError(t, err)
	before := goleak.IgnoreCurrent()
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			_, err := s.Enqueue(ctx, "q", []taskqueue.Task{numbered("x")(i)})
			if err != nil {
				assert.ErrorIs(t, err, taskqueue.ErrClosed)
			}
		})
	}
	require.NoError(t, s.Close())
	wg.Wait()
	_, err = s.Enqueue(ctx, "q", []taskqueue.Task{task("late")})
	assert.ErrorIs(t, err, taskqueue.ErrClosed)
	goleak.VerifyNone(t, before)
}

// eventually waits for a condition that becomes true for certain.
func eventually(t *testing.T, f func() bool) {
	t.Helper()
	require.Eventually(t, f, time.Minute, time.Millisecond)
}
