package taskqueue_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
)

func TestAnErrorOfAQueueNamesThePackageOnce(t *testing.T) {
	s := memstore.New()
	q, err := taskqueue.New(s)
	require.NoError(t, err)
	_, err = q.Enqueue(t.Context(), taskqueue.Task{Type: "t", MaxFailures: -1})
	require.ErrorAs(t, err, new(*taskqueue.InvalidError))
	assert.Regexp(t, "^taskqueue: queue default: MaxFailures: it is -1", err.Error())
	require.NoError(t, s.Close())
	_, err = q.Enqueue(t.Context(), taskqueue.Task{Type: "t"})
	require.ErrorIs(t, err, taskqueue.ErrClosed)
	assert.Equal(t, "taskqueue: queue default: the store is closed", err.Error())
}

// Whatever is wrong is an InvalidError that names it and says what to do, and nothing
// is changed.
func TestBadInputSaysWhatToDo(t *testing.T) {
	s := memstore.New()
	q, err := taskqueue.New(s)
	require.NoError(t, err)
	enqueue := func(task taskqueue.Task) func() error {
		return func() error {
			if task.Type == "" {
				task.Type = "t"
			}
			_, err := q.Enqueue(t.Context(), task)
			return err
		}
	}
	work := func(h taskqueue.Handlers, opts ...taskqueue.WorkOption) func() error {
		return func() error { return q.Work(t.Context(), h, opts...) }
	}
	ok := taskqueue.Handlers{"t": nothing}
	every := func(name, schedule string, task taskqueue.Task, opts ...taskqueue.EveryOption) func() error {
		return func() error {
			if task.Type == "" {
				task.Type = "t"
			}
			return q.Every(name, schedule, task, opts...)
		}
	}
	configure := func(set taskqueue.Settings) func() error {
		return func() error { return q.Configure(t.Context(), func(s *taskqueue.Settings) { *s = set }) }
	}
	long := strings.Repeat("x", taskqueue.MaxName+1)
	_, offset := time.Now().Zone()
	year := func(n int) time.Time { return time.Date(n, 1, 1, 0, 0, 0, 0, time.UTC) }
	for name, c := range map[string]struct {
		f    func() error
		says []string
	}{
		"a nil store":                 {func() error { _, err := taskqueue.New(nil); return err }, []string{"store", "memstore.New()"}},
		"no type":                     {func() error { _, err := q.Enqueue(t.Context(), taskqueue.Task{}); return err }, []string{"Type", "give it a name"}},
		"an id that is too long":      {enqueue(taskqueue.Task{ID: long}), []string{"ID", "257 bytes", "shorten"}},
		"a key that is no text":       {enqueue(taskqueue.Task{UniqueKey: "\xff"}), []string{"UniqueKey", "UTF-8", "encode"}},
		"a queue with a zero byte":    {enqueue(taskqueue.Task{Queue: "a\x00b"}), []string{"Queue", "zero byte", "leave it out"}},
		"a payload that is too long":  {enqueue(taskqueue.Task{Payload: make([]byte, taskqueue.MaxPayload+1)}), []string{"Payload", "1048577", "PayloadLimit"}},
		"headers that are too long":   {enqueue(taskqueue.Task{Headers: map[string]string{"k": strings.Repeat("x", taskqueue.MaxHeaders)}}), []string{"Headers", "Payload"}},
		"after too many":              {enqueue(taskqueue.Task{After: make([]string, taskqueue.MaxAfter+1)}), []string{"After", "101", "put a task in between"}},
		"after itself":                {enqueue(taskqueue.Task{ID: "a", After: []string{"a"}}), []string{"After", "itself", "leave that out"}},
		"after one twice":             {enqueue(taskqueue.Task{After: []string{"a", "a"}}), []string{"After", "twice", "leave one out"}},
		"after nobody":                {enqueue(taskqueue.Task{After: []string{"nobody"}}), []string{"After", "nobody", "add that before", "Retention"}},
		"OnFailed without After":      {enqueue(taskqueue.Task{OnFailed: taskqueue.OnFailedRun}), []string{"OnFailed", "set After"}},
		"an OnFailed that is none":    {enqueue(taskqueue.Task{After: []string{"a"}, OnFailed: "x"}), []string{"OnFailed", "skip, run, wait"}},
		"headers that are no text":    {enqueue(taskqueue.Task{Headers: map[string]string{"k": "\xff"}}), []string{"Headers", "UTF-8", "Payload"}},
		"a class that there is not":   {enqueue(taskqueue.Task{Priority: 8}), []string{"Priority", "most urgent is 7"}},
		"two times":                   {enqueue(taskqueue.Task{Delay: 1, RunAt: year(2030)}), []string{"Delay", "RunAt", "one of them"}},
		"a delay of a lifetime":       {enqueue(taskqueue.Task{Delay: math.MaxInt64}), []string{"Delay", "at most"}},
		"a time before computers":     {enqueue(taskqueue.Task{RunAt: year(1969)}), []string{"RunAt", "1969", "1970"}},
		"a time after all":            {enqueue(taskqueue.Task{ExpiresAt: year(9999)}), []string{"ExpiresAt", "9999", "2199"}},
		"a negative timeout":          {enqueue(taskqueue.Task{Timeout: -1}), []string{"Timeout", "0 for no bound"}},
		"a negative retention":        {enqueue(taskqueue.Task{Retention: -1}), []string{"Retention", "leave it 0"}},
		"a retention of a lifetime":   {enqueue(taskqueue.Task{Retention: math.MaxInt64}), []string{"Retention", "at most"}},
		"negative failures":           {enqueue(taskqueue.Task{MaxFailures: -1}), []string{"MaxFailures", "0 for 25"}},
		"too many crashes":            {enqueue(taskqueue.Task{MaxCrashes: 256}), []string{"MaxCrashes", "1 to 255"}},
		"a wrong Until":               {enqueue(taskqueue.Task{Until: 2}), []string{"Until", "End or Start"}},
		"a limit key with a star":     {enqueue(taskqueue.Task{LimitKey: "tenant-*"}), []string{"LimitKey", "star", "use another character"}},
		"a limit key too long":        {enqueue(taskqueue.Task{LimitKey: long}), []string{"LimitKey", "257 bytes", "shorten"}},
		"no handlers":                 {work(nil), []string{"Handlers", "name at least one"}},
		"a nil handler":               {work(taskqueue.Handlers{"t": nil}), []string{"Handlers", `"t"`, "leave the type out"}},
		"no queues":                   {work(ok, taskqueue.Queues(nil)), []string{"Queues", "at least one"}},
		"a queue without a weight":    {work(ok, taskqueue.Queues(map[string]int{"a": 0})), []string{"Queues", "weight of a is 0", "leave the queue out"}},
		"a queue without a name":      {work(ok, taskqueue.Queues(map[string]int{"": 1})), []string{"Queues", "empty"}},
		"a worker without a name":     {work(ok, taskqueue.WorkerName("")), []string{"WorkerName", "empty"}},
		"no name of a job":            {every("", "@daily", taskqueue.Task{}), []string{"name", "empty"}},
		"a long name of a job":        {every(long[:250], "@daily", taskqueue.Task{}), []string{"name", "250 bytes", "ids of its tasks"}},
		"a job with an id":            {every("n", "@daily", taskqueue.Task{ID: "x"}), []string{"Every", "ID", "leave them open"}},
		"a job that expires":          {every("n", "@daily", taskqueue.Task{ExpiresAt: year(2030)}), []string{"ExpiresAt", "leave them open"}},
		"words for a schedule":        {every("n", "every day", taskqueue.Task{}), []string{"schedule", "crontab"}},
		"a schedule without an end":   {every("n", "0 "+strings.Repeat("1,", 300)+"1 * * *", taskqueue.Task{}), []string{"schedule", "shorten"}},
		"six fields":                  {every("n", "0 0 0 * * *", taskqueue.Task{}), []string{"schedule", "five fields"}},
		"a day that never comes":      {every("n", "0 0 30 2 *", taskqueue.Task{}), []string{"schedule", "no such time"}},
		"an interval below a second":  {every("n", "@every 1500ms", taskqueue.Task{}), []string{"schedule", "whole seconds"}},
		"an interval without a space": {every("n", "@every5m", taskqueue.Task{}), []string{"schedule", "@every 90s"}},
		"an interval in a zone":       {every("n", "TZ=Nowhere/Else @every 5m", taskqueue.Task{}), []string{"schedule", "Nowhere/Else"}},
		"a zone of our own":           {every("n", "@daily", taskqueue.Task{}, taskqueue.InZone(time.FixedZone("Ours", 60))), []string{"schedule", "Ours", "time.LoadLocation"}},
		"a zone that lies":            {every("n", "@daily", taskqueue.Task{}, taskqueue.InZone(time.FixedZone("Europe/Berlin", 60))), []string{"zone", "time.LoadLocation"}},
		"the zone of this machine":    {every("n", "@daily", taskqueue.Task{}, taskqueue.InZone(time.FixedZone("Local", offset))), []string{"schedule", "Local", "time.LoadLocation"}},
		"a rate that is no number":    {configure(taskqueue.Settings{Rate: math.NaN()}), []string{"Rate", "0 for no limit"}},
		"a negative rate":             {configure(taskqueue.Settings{Rate: -1}), []string{"Rate", "0 for no limit"}},
		"a rate of never":             {configure(taskqueue.Settings{Rate: 1e-300}), []string{"Rate", "at least"}},
		"a negative burst":            {configure(taskqueue.Settings{Burst: -1}), []string{"Burst", "0 for 1"}},
		"a negative concurrency":      {configure(taskqueue.Settings{Concurrency: -1}), []string{"Concurrency", "Pause"}},
		"a negative limit of dead":    {configure(taskqueue.Settings{MaxDead: -1}), []string{"MaxDead", "0 to keep all"}},
		"a negative time of dead":     {configure(taskqueue.Settings{DeadRetention: -1}), []string{"DeadRetention", "for ever"}},
		"no state":                    {func() error { _, err := q.List(t.Context(), taskqueue.ListRequest{}); return err }, []string{"State", "StateScheduled to StateWaiting"}},
		"a state that there is not":   {func() error { _, err := q.Purge(t.Context(), 99); return err }, []string{"State(99)", "use one"}},
		"a purge of what runs":        {func() error { _, err := q.Purge(t.Context(), taskqueue.StateRunning); return err }, []string{"running", "cancel them first"}},
		"a negative page": {func() error {
			_, err := q.List(t.Context(), taskqueue.ListRequest{State: taskqueue.StateReady, Max: -1})
			return err
		}, []string{"Max", "0 for 100"}},
		"a cursor of nobody": {func() error {
			_, err := q.List(t.Context(), taskqueue.ListRequest{State: taskqueue.StateReady, Cursor: "x"})
			return err
		}, []string{"cursor", "returned"}},
		"a queue of no name":     {func() error { _, err := q.In("").Stats(t.Context()); return err }, []string{"queue", "empty"}},
		"a URL without a scheme": {func() error { _, err := taskqueue.Open(t.Context(), "tasks.db"); return err }, []string{"store", "sqlite:tasks.db"}},
		"a scheme of nobody":     {func() error { _, err := taskqueue.Open(t.Context(), "ftp:x"); return err }, []string{"store", "mem", "import"}},
		"a word for a state":     {func() error { _, err := taskqueue.ParseState("gone"); return err }, []string{"gone", "scheduled"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.f()
			require.Error(t, err)
			for _, text := range c.says {
				assert.ErrorContains(t, err, text)
			}
			assert.True(t, strings.HasPrefix(err.Error(), "taskqueue: "), err.Error())
			var wrong *taskqueue.InvalidError
			require.ErrorAs(t, err, &wrong)
		})
	}
	stats, err := s.Stats(context.Background(), q.Name())
	require.NoError(t, err)
	assert.Zero(t, stats.Settings)
	assert.Empty(t, stats.Counts)
}

func TestNilFunctionsPanic(t *testing.T) {
	for name, f := range map[string]func(){
		"Observe":   func() { taskqueue.Observe(nil) },
		"Backoff":   func() { taskqueue.Backoff(nil) },
		"InZone":    func() { taskqueue.InZone(nil) },
		"Typed":     func() { taskqueue.Typed[int](nil) },
		"Use":       func() { taskqueue.Handlers{}.Use(nil) },
		"Register":  func() { taskqueue.Register("x", nil) },
		"the taken": func() { taskqueue.Register("mem", taskqueue.Open) },
	} {
		assert.Panics(t, f, name)
	}
}

// A value that is out of its bounds, and has a nearest meaning, means that.
func TestOptionsOutOfTheirBoundsMeanTheNearest(t *testing.T) {
	q, _ := newQueue(t)
	for range 3 {
		add(t, q, taskqueue.Task{Type: "t", Delay: -time.Hour})
	}
	n, most := 0, 0
	require.NoError(t, q.Work(t.Context(), taskqueue.Handlers{"t": func(_ context.Context, c *taskqueue.Claim) error {
		n++
		most = max(most, n)
		assert.Less(t, time.Until(c.Deadline()), time.Second)
		n--
		return nil
	}}, taskqueue.Concurrency(-1), taskqueue.Lease(-1), taskqueue.ShutdownGrace(-1), taskqueue.WorkUntilEmpty()))
	assert.Equal(t, 1, most)
}
