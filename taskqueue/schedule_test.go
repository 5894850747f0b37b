package taskqueue_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
)

// ticks runs a worker for a while, and returns when tasks of type t began.
func ticks(t *testing.T, q *taskqueue.Queue, long time.Duration) (at []time.Time) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	var mu sync.Mutex
	require.NoError(t, q.Work(ctx, taskqueue.Handlers{"t": func(context.Context, *taskqueue.Claim) error {
		mu.Lock()
		defer mu.Unlock()
		at = append(at, time.Now())
		return nil
	}}))
	return at
}

func schedules(o *told) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.events {
		if e.Kind == taskqueue.EventSchedule {
			n++
		}
	}
	return n
}

// Two processes that start at the same time with two definitions of one name: the
// store hears of one first, and both follow that.
func TestTheFirstDefinitionOfANameWinsAlsoBetweenWorkersThatRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		fast, heardFast := observed(t, s)
		slow, heardSlow := observed(t, s)
		require.NoError(t, fast.Every("report", "*/2 * * * *", taskqueue.Task{Type: "t"}))
		require.NoError(t, slow.Every("report", "*/3 * * * *", taskqueue.Task{Type: "t"}))
		var all sync.WaitGroup
		var a, b []time.Time
		all.Go(func() { a = ticks(t, fast, 2*time.Hour+time.Minute) })
		synctest.Wait()
		all.Go(func() { b = ticks(t, slow, 2*time.Hour+time.Minute) })
		all.Wait()
		assert.Len(t, append(a, b...), 60, "those of the first alone")
		assert.Zero(t, schedules(heardFast))
		assert.Equal(t, 1, schedules(heardSlow), "the other is told, once")
	})
}

// A name whose schedule has changed: the old one is in force until it is unscheduled.
func TestUnscheduleLetsANewDefinitionIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		old, err := taskqueue.New(s)
		require.NoError(t, err)
		require.NoError(t, old.Every("report", "*/10 * * * *", taskqueue.Task{Type: "t"}))
		ticks(t, old, 15*time.Minute)
		all, err := old.Periodic(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 1)
		assert.Equal(t, "*/10 * * * *", all[0].Schedule)

		q, o := observed(t, s)
		require.NoError(t, q.Every("report", "@every 1m", taskqueue.Task{Type: "t"}))
		time.AfterFunc(50*time.Minute, func() {
			known, err := q.Unschedule(t.Context(), "report")
			assert.NoError(t, err)
			assert.True(t, known)
		})
		at := ticks(t, q, 100*time.Minute+30*time.Second)
		assert.Equal(t, 1, schedules(o))
		// From 0:15 on every ten minutes, unscheduled at 1:05; from when the next of those
		// would have been every minute, until 1:55.
		for i, a := range at {
			assert.Zero(t, a.Truncate(time.Second).Sub(a.Truncate(time.Minute)), "tick %d at %v", i, a)
		}
		assert.Len(t, at, 5+46)
	})
}

// A deploy changes the schedule at its start, not at its first tick. The older process, which
// still runs, follows it and is told once. One that starts again does not bring the old one back.
func TestTheNewestDefinitionOfANameIsInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		every := func(schedule string, day int) (*taskqueue.Queue, *told) {
			q, o := observed(t, s)
			require.NoError(t, q.Every("report", schedule, taskqueue.Task{Type: "t"}, taskqueue.DefinedAt(time.Date(1999, 1, day, 0, 0, 0, 0, time.UTC))))
			return q, o
		}
		old, toOld := every("*/10 * * * *", 1)
		deploy, toDeploy := every("30 * * * *", 2)
		var all sync.WaitGroup
		var a, b []time.Time
		all.Go(func() { a = ticks(t, old, 5*time.Hour+time.Minute) })
		time.Sleep(time.Hour + 5*time.Minute)
		all.Go(func() { b = ticks(t, deploy, 3*time.Hour) })
		all.Wait()
		var minutes []int
		for _, at := range append(a, b...) {
			minutes = append(minutes, int(at.Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).Minutes()))
		}
		slices.Sort(minutes)
		assert.Equal(t, []int{10, 20, 30, 40, 50, 60, 90, 150, 210, 270}, minutes, "also after the new one has ended")
		assert.Equal(t, 1, schedules(toOld))
		assert.Zero(t, schedules(toDeploy))

		again, toAgain := every("*/10 * * * *", 1)
		assert.Len(t, ticks(t, again, time.Hour), 1)
		assert.Equal(t, 1, schedules(toAgain))
	})
}

// A process that follows the newest goes back to its own when that is forgotten, and not to one that
// is older than its own.
func TestAnOlderDefinitionIsNotFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		define := func(schedule string, day int) {
			did, err := s.Tick(t.Context(), taskqueue.Tick{Queue: taskqueue.DefaultQueue, Name: "report", Schedule: schedule, Defined: time.Date(1999, 1, day, 0, 0, 0, 0, time.UTC)})
			require.NoError(t, err)
			require.True(t, did)
		}
		define("@every 10m0s", 3)
		q, o := observed(t, s)
		require.NoError(t, q.Every("report", "@every 20m", taskqueue.Task{Type: "t"}, taskqueue.DefinedAt(time.Date(1999, 1, 2, 0, 0, 0, 0, time.UTC))))
		time.AfterFunc(35*time.Minute, func() {
			_, err := q.Unschedule(t.Context(), "report")
			assert.NoError(t, err)
			define("@every 5m0s", 1)
		})
		assert.Len(t, ticks(t, q, 2*time.Hour+time.Minute), 3+5, "every ten minutes to 0:30, every twenty from 0:40")
		assert.Equal(t, 1, schedules(o))
	})
}

// The zone is part of a schedule.
func TestACronTextIsMeantInItsZone(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for name, every := range map[string]func(q *taskqueue.Queue) error{
		"InZone": func(q *taskqueue.Queue) error {
			return q.Every("report", "30 9 * * *", taskqueue.Task{Type: "t"}, taskqueue.InZone(berlin))
		},
		"CRON_TZ": func(q *taskqueue.Queue) error {
			return q.Every("report", "CRON_TZ=Europe/Berlin 30 9 * * *", taskqueue.Task{Type: "t"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memstore.New()
				q, o := observed(t, s)
				require.NoError(t, every(q))
				utc, err := taskqueue.New(s)
				require.NoError(t, err)
				nine := time.Date(2000, 1, 1, 9, 0, 0, 0, berlin)
				time.Sleep(time.Until(nine))
				at := ticks(t, q, time.Hour)
				require.Len(t, at, 1)
				assert.Equal(t, "09:30", at[0].In(berlin).Format("15:04"))
				require.NoError(t, utc.Every("report", "30 9 * * *", taskqueue.Task{Type: "t"}))
				time.Sleep(time.Until(nine.AddDate(0, 0, 1)))
				at = ticks(t, utc, 2*time.Hour)
				require.Len(t, at, 1)
				assert.Equal(t, "09:30", at[0].In(berlin).Format("15:04"), "another zone is another schedule")
				assert.Zero(t, schedules(o))
			})
		})
	}
}

func TestTheTaskOfATickHasItsNameAndTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t)
		name := strings.Repeat("n", taskqueue.MaxName-len("@2006-01-02T15:04:05Z"))
		require.NoError(t, q.Every(name, "@every 1h", taskqueue.Task{Type: "t", Queue: "reports", Payload: []byte("p"), Retention: time.Hour}))
		var got taskqueue.Task
		ctx, stop := context.WithCancel(t.Context())
		require.NoError(t, q.Work(ctx, taskqueue.Handlers{"t": func(_ context.Context, c *taskqueue.Claim) error {
			got = c.Task
			stop()
			return nil
		}}, taskqueue.Queues(map[string]int{"reports": 1})))
		assert.Equal(t, name+"@2000-01-01T01:00:00Z", got.ID)
		assert.Equal(t, "p", string(got.Payload))
		all, err := q.In("reports").Periodic(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 1)
	})
}

// A job whose task the store refuses does not fill the log.
func TestATickThatIsRefusedIsNotAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, o := observed(t, refusing{memstore.New()})
		require.NoError(t, q.Every("report", "@every 60s", taskqueue.Task{Type: "t"}))
		ticks(t, q, 10*time.Minute+time.Second)
		n := 0
		for _, e := range o.events {
			if e.Kind == taskqueue.EventStore {
				n++
			}
		}
		assert.Equal(t, 1+10, n, "one for the schedule, and one for each tick")
	})
}

type refusing struct{ taskqueue.Store }

func (refusing) Tick(context.Context, taskqueue.Tick) (bool, error) {
	return false, &taskqueue.InvalidError{What: "tick", Why: "no"}
}
