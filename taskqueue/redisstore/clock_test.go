package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// jump has the clock of the server seem to have been put back: everything that it has
// noted lies in the future by as much, but the times of tasks whose ids begin with at. If back
// is negative it seems to have been put forward.
func jump(t *testing.T, client *redis.Client, back time.Duration) {
	t.Helper()
	us := back.Microseconds()
	script := redis.NewScript(`
		local c = KEYS[1] .. 'c'
		local function move(f, d) local v = redis.call('HGET', c, f); if v then redis.call('HSET', c, f, string.format('%.0f', v + d)) end end
		move('step', ARGV[1])
		move('token', ARGV[1])
		move('allowed_at', ARGV[1])
		local run = redis.call('ZRANGE', KEYS[1] .. 'run', 0, -1)
		for _, id in ipairs(run) do redis.call('ZINCRBY', KEYS[1] .. 'run', ARGV[1], id) end
		local all = redis.call('HGETALL', KEYS[1] .. 'p')
		for i = 1, #all, 2 do
			local at = struct.unpack('>I7', all[i + 1])
			redis.call('HSET', KEYS[1] .. 'p', all[i], struct.pack('>I7', at + ARGV[1]) .. string.sub(all[i + 1], 8))
			if string.sub(all[i], 1, 2) ~= 'at' then redis.call('ZADD', KEYS[1] .. 'due:0', 'XX', 'INCR', ARGV[1], all[i]) end
		end
		for _, key in ipairs({'pace', 'wakes'}) do
			for _, of in ipairs(redis.call('ZRANGE', KEYS[1] .. key, 0, -1)) do redis.call('ZINCRBY', KEYS[1] .. key, ARGV[1], of) end
		end
		return 1`)
	require.NoError(t, script.Run(ctx, client, []string{"tq:{q}:"}, us).Err())
}

func TestTheClockOfTheServerIsPutBack(t *testing.T) {
	client := server(t)
	s := open(t, client)
	configure(t, s, taskqueue.Settings{Rate: 1000, Burst: 100})
	enqueue(t, s, task("a"), task("b"), task("c"))
	first := claim(t, s, 1, time.Minute)[0]
	dies := claim(t, s, 1, 200*time.Millisecond)[0]
	jump(t, client, time.Hour)
	second := claim(t, s, 1, time.Minute)
	require.Len(t, second, 1, "the rate limit does not wait for an hour")
	assert.Greater(t, second[0].Token, dies.Token, "R3")
	extend(t, s, first, "still there")
	settle(t, s, first)
	require.Eventually(t, func() bool { return len(claim(t, s, 1, time.Minute)) == 1 }, patience, 20*time.Millisecond, "a lease that was given before the jump runs out in its time")
	i, err := s.Get(ctx, "q", dies.ID)
	require.NoError(t, err)
	assert.Equal(t, 1, i.Crashes)
	audited(t, s)
}

// A task that was to run at once, or had waited for as long as it was to, does not wait for the hour. A
// RunAt is a time that somebody has said.
func TestWhatWasReadyIsReadyWhenTheClockOfTheServerIsPutBack(t *testing.T) {
	client := server(t)
	s := open(t, client)
	at, waited, waits := task("at"), task("waited"), task("waits")
	at.RunAt = time.Now().Add(30 * time.Minute)
	waited.Delay = time.Millisecond
	waits.Delay = 10 * time.Minute
	var tasks []taskqueue.Task
	for i := range 900 {
		tasks = append(tasks, task(fmt.Sprint("now", i)))
	}
	enqueue(t, s, tasks...)
	enqueue(t, s, at, waited, waits)
	for i := range 900 { // more than one step looks at
		tasks[i].ID = fmt.Sprint("then", i)
	}
	enqueue(t, s, tasks...)
	time.Sleep(2 * time.Millisecond) // the delay is over: how long after that does not matter
	claim(t, s, 0, time.Minute)      // the server was asked before the clock was put back
	jump(t, client, time.Hour)
	ran := map[string]bool{}
	for range 20 {
		got, err := s.Claim(ctx, store.ClaimRequest{Queue: "q", Worker: "w", Nonce: fmt.Sprint("back", len(ran), time.Now()), Max: 1000, Lease: time.Minute})
		require.NoError(t, err)
		for _, i := range got.Tasks {
			ran[i.ID] = true
		}
		if got.NextDue.After(got.Now) {
			break
		}
	}
	assert.Len(t, ran, 1801)
	assert.True(t, ran["waited"])
	assert.False(t, ran["at"] || ran["waits"])
	audited(t, s)
}

// R9: the clock of the server goes an hour forward. No worker has crashed.
// A worker whose clock is far ahead does not keep the others from ticking until then.
func TestATickOfTheFarFutureIsRefused(t *testing.T) {
	s := open(t, server(t))
	tick := func(at time.Time) (bool, error) {
		return s.Tick(ctx, taskqueue.Tick{Queue: "q", Name: "n", Schedule: "@hourly", At: at, Task: task(at.Format(time.RFC3339))})
	}
	_, err := tick(time.Now().Add(24 * time.Hour))
	require.ErrorAs(t, err, new(*taskqueue.InvalidError))
	did, err := tick(time.Now().Add(time.Minute))
	require.NoError(t, err)
	assert.True(t, did)
}

func TestTheClockOfTheServerIsPutForward(t *testing.T) {
	client := server(t)
	s := open(t, client)
	enqueue(t, s, task("a"), task("b"), task("c"))
	runs := claim(t, s, 3, time.Minute)
	require.Len(t, runs, 3)
	jump(t, client, -time.Hour)
	assert.Empty(t, claim(t, s, 10, time.Minute), "the leases get their length once more")
	extend(t, s, runs[0], "still there")
	settle(t, s, runs[1])
	for _, run := range runs {
		i, err := s.Get(ctx, "q", run.ID)
		require.NoError(t, err)
		assert.Zero(t, i.Crashes)
		if i.State == taskqueue.StateRunning {
			assert.Less(t, time.Until(i.LeaseEnd), 2*time.Minute)
			assert.Greater(t, time.Until(i.LeaseEnd), time.Duration(0))
		}
	}
	jump(t, client, -time.Hour)
	jump(t, client, 2*time.Hour)
	assert.Empty(t, claim(t, s, 10, time.Minute), "and in both directions one after the other")
	settle(t, s, runs[0])
	settle(t, s, runs[2])
	audited(t, s)
}

// R3: tokens go on over a clock that is put back, a queue that is emptied, and an id that
// is added again.
func TestTokensIncreaseWhateverHappens(t *testing.T) {
	client := server(t)
	s := open(t, client)
	last := int64(0)
	for i := range 6 {
		enqueue(t, s, task("a"))
		run := claim(t, s, 1, time.Minute)[0]
		assert.Greater(t, run.Token, last)
		last = run.Token
		settle(t, s, run)
		if i%2 == 0 {
			n, _, err := s.Purge(ctx, "q", taskqueue.StateDone, "")
			require.NoError(t, err)
			assert.Equal(t, 1, n)
		} else {
			did, err := s.Act(ctx, "q", "a", store.ActDelete)
			require.NoError(t, err)
			assert.True(t, did)
		}
		jump(t, client, time.Hour)
		last += time.Hour.Microseconds() // jump has moved what was noted, too
	}
	audited(t, s)
}

// R10: ids of what has ended are known for a minute, and then forgotten some at a time.
func TestEndedIDsAreKnownForAMinute(t *testing.T) {
	client := server(t)
	s := open(t, client)
	var tasks []taskqueue.Task
	for i := range 250 {
		tasks = append(tasks, task(fmt.Sprintf("%03d", i)))
	}
	kept := task("kept")
	kept.Retention = time.Hour
	enqueue(t, s, append(tasks, kept)...)
	runs := claim(t, s, 1000, time.Minute)
	require.Len(t, runs, 251)
	outcomes := make([]store.Outcome, len(runs))
	for i, run := range runs {
		outcomes[i] = store.Outcome{Ref: store.Ref{ID: run.ID, Token: run.Token}, Kind: store.Succeeded}
	}
	_, err := s.Settle(ctx, "q", outcomes) // all at once: a minute is not long where each is some steps
	require.NoError(t, err)
	later := func(d time.Duration) int64 { // what is to be forgotten by then is to be now
		t.Helper()
		_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, id := range client.ZRange(ctx, "tq:{q}:forget", 0, -1).Val() {
				p.ZIncrBy(ctx, "tq:{q}:forget", -float64(d.Microseconds()), id)
			}
			return nil
		})
		require.NoError(t, err)
		claim(t, s, 0, time.Minute)
		st, err := s.Stats(ctx, "q")
		require.NoError(t, err)
		return st.States[taskqueue.StateDone]
	}
	assert.EqualValues(t, 251, later(0))
	assert.EqualValues(t, 151, later(time.Minute), "a hundred a call")
	claim(t, s, 0, time.Minute)
	assert.EqualValues(t, 1, later(0))
	outcome := func(run taskqueue.Info) store.SettleResult {
		r, err := s.Settle(ctx, "q", []store.Outcome{{Ref: store.Ref{ID: run.ID, Token: run.Token}, Kind: store.Succeeded}})
		require.NoError(t, err)
		return r[0]
	}
	for _, run := range runs {
		want := store.Gone
		if run.ID == "kept" {
			want = store.Settled
		}
		assert.Equal(t, want, outcome(run), run.ID)
	}
	audited(t, s)
}

// The rate of a key was used while the clock was ahead: what it keeps does not wait for an hour.
func TestTheRateOfAKeyDoesNotWaitForAClockThatWasPutBack(t *testing.T) {
	client := server(t)
	s := open(t, client)
	require.NoError(t, s.SetLimit(ctx, "q", taskqueue.Limit{Key: "k", Rate: 100, Burst: 1}))
	for _, id := range []string{"a", "b", "c"} {
		one := task(id)
		one.LimitKey = "k"
		enqueue(t, s, one)
	}
	require.Len(t, claim(t, s, 10, time.Minute), 1)
	jump(t, client, time.Hour)
	asks := func() taskqueue.Claimed {
		got, err := s.Claim(ctx, store.ClaimRequest{Queue: "q", Worker: "v", Nonce: fmt.Sprint(time.Now()), Max: 10, Lease: time.Minute})
		require.NoError(t, err)
		return got
	}
	for n := 0; n < 2; {
		got := asks()
		if len(got.Tasks) == 0 {
			require.False(t, got.NextDue.IsZero())
			require.Less(t, got.NextDue.Sub(got.Now), time.Second)
			time.Sleep(got.NextDue.Sub(got.Now))
			got = asks()
			require.NotEmpty(t, got.Tasks, "at the time that was told")
		}
		n += len(got.Tasks)
	}
	audited(t, s)
}
