//go:build unix

package sqlstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// The wall clock is an hour ahead, and is put back: what was ready by it is ready, and what was
// given a time waits for that.
func TestWhatWasReadyIsReadyWhenTheClockIsPutBack(t *testing.T) {
	for name, before := range map[string]func(t *testing.T, s *Store){
		"a new queue":              func(*testing.T, *Store) {},
		"a queue that was claimed": func(t *testing.T, s *Store) { claimed(t, s, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			s := openTemp(t)
			defer func() { require.NoError(t, s.Close()) }()
			machine(s, time.Hour, time.Hour, "one")
			before(t, s)
			later, promoted := newTask("later"), newTask("promoted")
			later.Delay, promoted.Delay = time.Second, time.Minute
			enqueued(t, s, newTask("released"), later)
			settleAs(t, s, store.Released, claimed(t, s, 1).Tasks...)
			enqueued(t, s, newTask("at once"), promoted)
			done, err := s.Act(t.Context(), "q", "promoted", store.ActPromote)
			require.NoError(t, err)
			require.True(t, done)
			machine(s, 0, time.Hour+time.Second, "one")
			var ids []string
			for _, r := range claimed(t, s, 10).Tasks {
				ids = append(ids, r.ID)
			}
			assert.ElementsMatch(t, []string{"released", "at once", "promoted"}, ids)
			sound(t, s)
		})
	}
}

// The wall clock is put forward by an hour: the outcome of a run, whose answer was lost, is known. It
// is known as long after a start of the machine, too, and not for ever.
func TestAnOutcomeIsNotForgottenByTheWallClock(t *testing.T) {
	s := openTemp(t)
	defer func() { require.NoError(t, s.Close()) }()
	machine(s, 0, time.Hour, "one")
	enqueued(t, s, newTask("a"))
	run := claimed(t, s, 1).Tasks[0]
	settleAs(t, s, store.Succeeded, run)
	again := func(want store.SettleResult) {
		t.Helper()
		claimed(t, s, 0)
		assert.Equal(t, []store.SettleResult{want}, settleAs(t, s, store.Succeeded, run))
	}
	machine(s, time.Hour, time.Hour+time.Second, "one")
	again(store.Settled)
	machine(s, time.Hour, 10*time.Second, "two")
	again(store.Settled)
	machine(s, time.Hour, 80*time.Second, "two")
	again(store.Gone)
}

// A process whose clock is a year ahead does not have the ticks of the others refused.
func TestATickOfTheFarFutureIsRefused(t *testing.T) {
	s := openTemp(t)
	defer func() { require.NoError(t, s.Close()) }()
	tick := func(at time.Time) (bool, error) {
		one := newTask("job" + at.String())
		one.RunAt = at
		return s.Tick(t.Context(), taskqueue.Tick{Queue: "q", Name: "job", Schedule: "@every 1m", At: at, Task: one})
	}
	now := time.Now().Truncate(time.Minute)
	for _, at := range []time.Duration{0, 365 * 24 * time.Hour, time.Minute} {
		added, err := tick(now.Add(at))
		if at > time.Hour {
			require.ErrorAs(t, err, new(*taskqueue.InvalidError))
			continue
		}
		require.NoError(t, err)
		assert.True(t, added, at)
	}
}

// A zone of a day, which JSON does not write.
func TestATimeInAnyZone(t *testing.T) {
	s := openTemp(t)
	defer func() { require.NoError(t, s.Close()) }()
	one := newTask("a")
	one.RunAt = time.Now().In(time.FixedZone("far", 24*3600))
	enqueued(t, s, one)
	i, err := s.Get(t.Context(), "q", "a")
	require.NoError(t, err)
	assert.True(t, one.RunAt.Equal(i.RunAt))
}

// The clock of the server was an hour ahead, and what workers have noted then stands in the future:
// a gap is seen all the same.
func TestAGapIsSeenAfterTheClockOfTheServerWasPutBack(t *testing.T) {
	all, pool, _ := pgStores(t, 1)
	s := all[0]
	add(t, s, newTask("a"))
	const lease = time.Minute
	_, err := claimAs(s, "w", "1/1", 1, lease)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), "UPDATE tq_worker SET last_seen = last_seen + 3600000000, noted = noted + 3600000000")
	require.NoError(t, err)
	_, err = claimAs(s, "other", "", 0, lease) // before the outage
	require.NoError(t, err)
	for _, text := range []string{ // two minutes go by
		"UPDATE tq_worker SET last_seen = last_seen - 120000000, noted = noted - 120000000 WHERE last_seen > 0",
		"UPDATE tq_task SET lease_end = lease_end - 120000000 WHERE state = 3",
	} {
		_, err = pool.Exec(t.Context(), text)
		require.NoError(t, err)
	}
	_, err = claimAs(s, "other", "", 0, lease)
	require.NoError(t, err)
	i, err := s.Get(t.Context(), "q", "a")
	require.NoError(t, err)
	assert.Zero(t, i.Crashes, i.LastError)
}

// A claim reads the clock, and waits for others at the row of the rate: the time that they have
// written there is not put back.
func TestTheTimeOfTheAllowanceIsNotPutBack(t *testing.T) {
	all, pool, _ := pgStores(t, 2)
	a, b := all[0], all[1]
	configure(t, a, "q", taskqueue.Settings{Rate: 10, Burst: 100})
	at := int64(0)
	hook(a, onceAt("INSERT INTO tq_limit", func() {
		_, err := claimAs(b, "b", "b/1", 1, time.Minute)
		assert.NoError(t, err)
		at = number(t, pool, "SELECT allowed_at FROM tq_limit")
	}))
	_, err := claimAs(a, "a", "a/1", 1, time.Minute)
	require.NoError(t, err)
	assert.Greater(t, number(t, pool, "SELECT allowed_at FROM tq_limit"), at)
}

// The rate of a key was used while the clock was ahead: what it keeps does not wait for an hour.
func TestTheRateOfAKeyDoesNotWaitForAClockThatWasPutBack(t *testing.T) {
	limit := taskqueue.Limit{Key: "k", Rate: 100, Burst: 1}
	rest := func(t *testing.T, s *Store) {
		for n := 0; n < 2; {
			got := claimed(t, s, 10)
			if len(got.Tasks) == 0 {
				require.False(t, got.NextDue.IsZero())
				require.Less(t, got.NextDue.Sub(got.Now), time.Second)
				sleep(t.Context(), got.NextDue.Sub(got.Now))
				got = claimed(t, s, 10)
				require.NotEmpty(t, got.Tasks, "at the time that was told")
			}
			n += len(got.Tasks)
		}
		sound(t, s)
	}
	begin := func(t *testing.T, s *Store) {
		require.NoError(t, s.SetLimit(t.Context(), "q", limit))
		add(t, s, taskUnder("a", "k"), taskUnder("b", "k"), taskUnder("c", "k"))
		require.Len(t, claimed(t, s, 10).Tasks, 1)
	}
	t.Run("postgres", func(t *testing.T) {
		all, pool, _ := pgStores(t, 1)
		begin(t, all[0])
		for _, text := range []string{
			"UPDATE tq_worker SET last_seen = last_seen + 3600000000, noted = noted + 3600000000", "UPDATE tq_pace SET at = at + 3600000000",
		} {
			_, err := pool.Exec(t.Context(), text)
			require.NoError(t, err)
		}
		rest(t, all[0])
	})
	t.Run("sqlite, after a start of the machine", func(t *testing.T) {
		s := openTemp(t)
		defer func() { require.NoError(t, s.Close()) }()
		machine(s, 0, 1000*time.Hour, "first")
		begin(t, s)
		since := time.Now()
		f := s.db.(*file)
		f.clock = func() moment {
			passed := time.Since(since).Microseconds()
			return moment{wall: time.Now().UnixMicro(), steady: 10_000_000 + passed, boot: "second"}
		}
		rest(t, s)
	})
}
