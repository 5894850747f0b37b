package redisstore_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/redisstore"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// scripts returns how many scripts the server has carried out.
func scripts(t *testing.T, client *redis.Client) (n int) {
	t.Helper()
	stats, err := client.Info(ctx, "commandstats").Result()
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`cmdstat_evalsha:calls=(\d+)`).FindAllStringSubmatch(stats, -1) {
		calls, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		n += calls
	}
	return n
}

// A sleeper waits as a worker does that was told that nothing is due.
type sleeper struct {
	s     taskqueue.Store
	name  string
	n     int
	woken chan *sleeper
}

// sleep claims, and has the sleeper told to woken when the store wakes it.
func (w *sleeper) sleep(ctx context.Context, t *testing.T) (tasks int) {
	w.n++
	got, err := w.s.Claim(ctx, store.ClaimRequest{Queue: "q", Worker: w.name, Nonce: fmt.Sprint(w.n), Max: 10, Lease: time.Minute})
	require.NoError(t, err)
	async.Go(ctx, func(ctx context.Context) error {
		if err := w.s.Wait(ctx, "q", got.Seen, time.Now().Add(time.Hour)); err == nil {
			w.woken <- w
		}
		return nil
	})
	return len(got.Tasks)
}

// listening returns a store that has begun to listen, as it does in the first Wait: that is told
// then that it may have missed something.
func listening(t *testing.T, client *redis.Client) *redisstore.Store {
	t.Helper()
	s := open(t, client)
	got, err := s.Claim(ctx, store.ClaimRequest{Queue: "q", Worker: "first", Nonce: "1", Max: 1, Lease: time.Minute})
	require.NoError(t, err)
	require.NoError(t, s.Wait(ctx, "q", got.Seen, time.Now().Add(time.Hour)))
	require.NoError(t, client.Del(ctx, "tq:{q}:sleep").Err()) // it is gone
	return s
}

// asleep has all that sleep be taken to have asked just now for an hour, however slow this machine is. The server wakes
// nobody who has not asked for some seconds.
func asleep(t *testing.T, client *redis.Client) {
	t.Helper()
	for _, name := range client.ZRange(ctx, "tq:{q}:sleep", 0, -1).Val() {
		require.NoError(t, client.ZIncrBy(ctx, "tq:{q}:sleep", float64(time.Hour.Microseconds()), name).Err())
	}
}

// sleepers has n workers of one process and as many of others wait.
func sleepers(ctx context.Context, t *testing.T, client *redis.Client, n int) chan *sleeper {
	t.Helper()
	woken := make(chan *sleeper, 1000)
	stores := []*redisstore.Store{listening(t, client)}
	for range n {
		stores = append(stores, listening(t, client))
	}
	for i := range 2 * n {
		(&sleeper{s: stores[max(i-n+1, 0)], name: fmt.Sprint("w", i), woken: woken}).sleep(ctx, t)
	}
	asleep(t, client)
	return woken
}

func TestATaskOnAnIdleQueueWakesOneWorker(t *testing.T) {
	client := server(t)
	adds := open(t, client)
	err := async.Scope(ctx, func(ctx context.Context) error {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		woken := sleepers(ctx, t, client, 8)
		for i := range 5 {
			before := scripts(t, client)
			enqueue(t, adds, task(fmt.Sprint("task", i)))
			assert.Equal(t, 1, (<-woken).sleep(ctx, t))
			require.NoError(t, client.Publish(ctx, "tq:{q}:wake", "nobody:0").Err()) // behind what the task has said
			assert.Empty(t, woken)
			assert.Equal(t, 2, scripts(t, client)-before, "one adds it and one claims it")
		}
		var three []taskqueue.Task
		for i := range 3 {
			three = append(three, task(fmt.Sprint("together", i)))
		}
		enqueue(t, adds, three...)
		for range 3 {
			<-woken
		}
		assert.Empty(t, woken)
		configure(t, adds, taskqueue.Settings{Rate: 1000})
		for range 13 {
			<-woken // what is for all wakes all that sleep
		}
		return nil
	})
	require.NoError(t, err)
}

// A worker that was killed is named, and hears nothing: the next task is for another one.
func TestWhoHasNotAskedForLongIsNotWoken(t *testing.T) {
	client := server(t)
	s := open(t, client)
	claim(t, s, 1, time.Minute)
	assert.EqualValues(t, 1, client.ZCard(ctx, "tq:{q}:sleep").Val())
	old := client.ZRange(ctx, "tq:{q}:sleep", 0, 0).Val()[0]
	require.NoError(t, client.ZIncrBy(ctx, "tq:{q}:sleep", -float64(time.Minute.Microseconds()), old).Err())
	sub := client.PSubscribe(ctx, "tq:*")
	defer func() { assert.NoError(t, sub.Close()) }()
	_, err := sub.Receive(ctx)
	require.NoError(t, err)
	enqueue(t, s, task("a"))
	require.NoError(t, client.Publish(ctx, "tq:end", "").Err())
	assert.Equal(t, "tq:end", (<-sub.Channel()).Channel)
	assert.Zero(t, client.ZCard(ctx, "tq:{q}:sleep").Val())
}
