package pagetest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/page"
	taskstore "github.com/ambit-go/ambit/taskqueue/store"
)

func TestAListHasTheTasksOfAState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		fill(t, s, "mail", "")
		for state, want := range map[string]string{"dead": "dead0", "retrying": "failed2", "done": "done3", "running": "running0", "scheduled": "tick", "ready": "No task is ready."} {
			status, text, _ := get(s, "/list?queue=mail&state="+state)
			assert.Equal(t, http.StatusOK, status)
			assert.Contains(t, text, want, state)
			assert.Contains(t, text, ">dead 2</a>", "the tabs have the counts")
		}
		for query, want := range map[string]string{"type=other": "like that", "error=because": "dead1", "error=other": "like that", "alike=dead+because+of+": "dead1", "alike=other": "like that", "key=x": "like that", "older=24": "like that"} {
			_, text, _ := get(s, "/list?queue=mail&state=dead&"+query)
			assert.Contains(t, text, want, query)
		}
		for query, c := range map[string]struct {
			status int
			want   string
		}{
			"queue=nothing":        {http.StatusNotFound, "There is no such queue"},
			"queue=mail&state=odd": {http.StatusBadRequest, "use one of scheduled"},
			"queue=mail&older=odd": {http.StatusBadRequest, "a number of hours"},
			"queue=mail&after=odd": {http.StatusBadRequest, "cursor"},
			"":                     {http.StatusBadRequest, "queue"},
		} {
			status, text, _ := get(s, "/list?"+query)
			assert.Equal(t, c.status, status, query)
			assert.Contains(t, text, c.want, query)
		}
		status, _, _ := get(s, "/list?queue=mail", page.Queues("other"))
		assert.Equal(t, http.StatusNotFound, status, "a queue that is not shown has no list")
	})
}

var nextLink = regexp.MustCompile(`<a href="(list\?[^"]*after=[^"]*)">`)

func TestAListHasPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		q, err := taskqueue.New(s)
		require.NoError(t, err)
		var tasks []taskqueue.Task
		for i := range 700 {
			tasks = append(tasks, taskqueue.Task{ID: fmt.Sprintf("id%03d", i), Type: fmt.Sprint("t", i/650)})
		}
		_, err = q.EnqueueAll(ctx, tasks)
		require.NoError(t, err)
		for query, n := range map[string]int{"": 700, "&type=t1": 50} {
			seen := map[string]bool{}
			pages := 0
			for at := "/list?queue=default" + query; at != ""; pages++ {
				_, text, _ := get(s, at)
				for _, id := range regexp.MustCompile(`<bdi>id\d{3}</bdi>`).FindAllString(text, -1) {
					seen[id] = true
				}
				next := nextLink.FindStringSubmatch(text)
				if at = ""; next != nil {
					at = "/" + strings.ReplaceAll(next[1], "&amp;", "&")
				}
			}
			assert.Len(t, seen, n, query)
			assert.LessOrEqual(t, pages, 15)
		}
	})
}

func TestAFilterLooksAtABoundedNumberOfTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		q, err := taskqueue.New(s)
		require.NoError(t, err)
		for range 5 {
			_, err = q.EnqueueAll(ctx, tasks(500))
			require.NoError(t, err)
		}
		_, text, _ := get(s, "/list?queue=default&type=nobody")
		assert.Contains(t, text, "Not among the 2,000 tasks that were looked at.")
		assert.Contains(t, text, "Look further")
	})
}

func TestATaskHasAPageOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		root, err := taskqueue.New(s)
		require.NoError(t, err)
		q := root.In("mail")
		_, err = q.EnqueueAll(ctx, []taskqueue.Task{
			{ID: "parent", Type: "first", Retention: time.Hour},
			{ID: "a", Type: "mail.send", Payload: []byte(`{"to":"ada"}`), Headers: map[string]string{"trace": "xyz"}, UniqueKey: "u1", LimitKey: "l1",
				After: []string{"parent"}, Priority: 5, MaxFailures: 3, Timeout: time.Minute, Retention: time.Hour},
		})
		require.NoError(t, err)
		_, text, _ := get(s, "/task?queue=mail&id=a")
		for _, want := range []string{"waiting", "Runs after", ">parent<", "ready", "it is cancelled", "to run after 1 other<"} {
			assert.Contains(t, text, want)
		}
		fails := true
		work := func() {
			t.Helper()
			time.Sleep(time.Hour / 2)
			require.NoError(t, q.Work(ctx, taskqueue.Handlers{
				"first": func(context.Context, *taskqueue.Claim) error { return nil },
				"mail.send": func(_ context.Context, c *taskqueue.Claim) error {
					if fails {
						return errors.New("no route\nto host")
					}
					c.SetResult([]byte("sent\x00"))
					return nil
				},
			}, taskqueue.WorkUntilEmpty(), taskqueue.WorkerName("w1")))
		}
		work()
		_, text, _ = get(s, "/task?id=a")
		for _, want := range []string{"mail.send", "retrying", "no route\nto host", "added to queue mail", "run 1 began on worker w1", "due to run", "1 of 3",
			"&#34;to&#34;: &#34;ada&#34;", "12 bytes", "Header <bdi>trace", "xyz", "u1", "l1", "60 s"} {
			assert.Contains(t, text, want)
		}
		fails = false
		work()
		_, text, _ = get(s, "/task?id=a")
		for _, want := range []string{"1 run before the last", "Error of an earlier run", "run 2 began", "Result", `sent\x00`, "5 bytes"} {
			assert.Contains(t, text, want)
		}
		status, text, _ := get(s, "/task?id=nobody")
		assert.Equal(t, http.StatusNotFound, status)
		assert.Contains(t, text, "No queue has a task")
		status, _, _ = get(s, "/task?queue=mail&id=a", page.Queues("other"))
		assert.Equal(t, http.StatusNotFound, status, "a queue that is not shown has no tasks")
		_, err = root.In("reports").Enqueue(ctx, taskqueue.Task{ID: "a", Type: "t"})
		require.NoError(t, err)
		_, text, _ = get(s, "/task?id=a")
		assert.Contains(t, text, "<bdi>reports</bdi></a> has a task of this ID, too")
	})
}

func TestATaskThatHasFailedNamesThoseThatWereSkippedAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		q, err := taskqueue.New(s)
		require.NoError(t, err)
		_, err = q.EnqueueAll(ctx, []taskqueue.Task{
			{ID: "fetch", Type: "t"}, {ID: "resize", Type: "t", After: []string{"fetch"}}, {ID: "publish", Type: "t", After: []string{"resize"}}, {ID: "other", Type: "t"},
		})
		require.NoError(t, err)
		for _, id := range []string{"other", "fetch"} {
			_, err = q.Cancel(ctx, id)
			require.NoError(t, err)
		}
		_, text, _ := get(s, "/task?id=fetch")
		assert.Contains(t, text, "Skipped after it")
		assert.Contains(t, text, ">resize<")
		assert.NotContains(t, text, ">publish<", "it was skipped after resize")
		_, text, _ = get(s, "/task?id=other")
		assert.NotContains(t, text, "Skipped after it")
	})
}

func TestTasksThatWaitForOthersAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		q, err := taskqueue.New(s)
		require.NoError(t, err)
		_, err = q.EnqueueAll(ctx, []taskqueue.Task{
			{ID: "build", Type: "build"}, {ID: "lint", Type: "lint", Retention: time.Hour},
			{ID: "test", Type: "test", After: []string{"build", "lint"}}, {ID: "ship", Type: "ship", After: []string{"build"}, OnFailed: taskqueue.OnFailedWait},
		})
		require.NoError(t, err)
		require.NoError(t, q.Work(ctx, taskqueue.Handlers{
			"build": func(context.Context, *taskqueue.Claim) error {
				return taskqueue.RetryAfter(time.Hour, errors.New("compiler is missing"))
			},
			"lint": func(context.Context, *taskqueue.Claim) error { return nil },
		}, taskqueue.WorkUntilEmpty()))
		part := func() string {
			_, text, _ := get(s, "/")
			_, text, _ = strings.Cut(text, `data-part="waiting"`)
			text, _, _ = strings.Cut(text, "</section>")
			return text
		}
		text := part()
		assert.Contains(t, text, ">build<")
		assert.Contains(t, text, `data-label="Others">2<`)
		assert.Contains(t, text, "compiler is missing")
		assert.NotContains(t, text, ">lint<", "it is done, and nobody waits for it")
		_, list, _ := get(s, "/list?queue=default&state=waiting")
		assert.Contains(t, list, ">build</bdi></a>, <a")

		_, err = q.Delete(ctx, "build")
		require.NoError(t, err)
		text = part()
		assert.Contains(t, text, "not known", "ship waits for a task that is not there")
		_, err = q.Delete(ctx, "ship")
		require.NoError(t, err)
		assert.Contains(t, part(), "No task waits for others.")
	})
}

func TestLimitsOfKeysAndTypesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		q, err := taskqueue.New(s)
		require.NoError(t, err)
		require.NoError(t, q.SetLimit(ctx, taskqueue.Limit{Key: "tenant-*", Concurrency: 1}))
		require.NoError(t, q.SetLimit(ctx, taskqueue.Limit{Type: "slow", Rate: 0.5, Burst: 2}))
		_, err = q.EnqueueAll(ctx, []taskqueue.Task{
			{Type: "t", LimitKey: "tenant-7"}, {Type: "t", LimitKey: "tenant-7"}, {Type: "t", LimitKey: "tenant-7"}, {Type: "t", LimitKey: "tenant-8"},
		})
		require.NoError(t, err)
		_, err = s.Claim(ctx, taskstore.ClaimRequest{Queue: "default", Worker: "w", Nonce: "1", Max: 10, Lease: time.Hour})
		require.NoError(t, err)
		_, err = q.Enqueue(ctx, taskqueue.Task{Type: "t", LimitKey: "tenant-7"}) // no claim has come to it yet
		require.NoError(t, err)
		_, text, _ := get(s, "/")
		_, text, _ = strings.Cut(text, `data-part="limits"`)
		text, _, _ = strings.Cut(text, "</section>")
		rows := strings.Split(regexp.MustCompile(`<[^>]*>|\n`).ReplaceAllString(strings.ReplaceAll(text, "</tr>", "|"), " "), "|")
		require.Len(t, rows, 5, "%q", rows)
		for i, want := range []string{"tenant-7 default at most 1 run of tenant-* 1 2", "tenant-8 default at most 1 run of tenant-* 1 0", "kind slow default at most 0.5 a second, 2 at once 0 0"} {
			assert.Contains(t, strings.Join(strings.Fields(rows[i+1]), " "), want)
		}
	})
}

func TestSchedulesHaveTheirNextTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it is midnight, of the year 2000
		s := open(t)
		for name, schedule := range map[string]string{"nightly": "30 2 * * *", "often": "@every 90s", "berlin": "CRON_TZ=Europe/Berlin 0 12 * * *"} {
			_, err := s.Tick(ctx, taskqueue.Tick{Queue: "mail", Name: name, Schedule: schedule})
			require.NoError(t, err)
		}
		_, text, _ := get(s, "/")
		for _, want := range []string{"in 2 h 30 min", "in 90 s", "in 11 h 0 min", `datetime="2000-01-01T02:30:00Z"`, "none yet"} {
			assert.Contains(t, text, want)
		}
	})
}

func TestWorkersAreToldWithTheirRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		q, err := taskqueue.New(s)
		require.NoError(t, err)
		_, err = q.EnqueueAll(ctx, tasks(15))
		require.NoError(t, err)
		for i, worker := range []string{"w1", "w2"} {
			_, err = s.Claim(ctx, taskstore.ClaimRequest{Queue: "default", Worker: worker, Nonce: "1", Max: 12 - 9*i, Lease: time.Hour})
			require.NoError(t, err)
			time.Sleep(time.Minute)
		}
		_, text, _ := get(s, "/")
		_, text, _ = strings.Cut(text, `data-part="running"`)
		first, second, found := strings.Cut(text, ">w2<")
		require.True(t, found)
		assert.Contains(t, first, `data-label="Runs">12<`)
		assert.Equal(t, 10, strings.Count(first, "<li>"))
		assert.Contains(t, first, "for 2 min 0 s")
		assert.Contains(t, first, "and others")
		assert.Contains(t, second, `data-label="Runs">3<`)
		assert.Contains(t, second, "for 60 s")
	})
}

func TestAKindHasChartsOfWhatWorkersNote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		q, err := taskqueue.New(s)
		require.NoError(t, err)
		ctx, stop := context.WithCancel(ctx)
		ended := make(chan error)
		go func() {
			ended <- q.Work(ctx, taskqueue.Handlers{"mail": func(_ context.Context, c *taskqueue.Claim) error {
				time.Sleep(100 * time.Millisecond)
				if c.Priority > 0 {
					return taskqueue.Dead(errors.New("no"))
				}
				return nil
			}})
		}()
		for i := range 30 {
			_, err := q.Enqueue(ctx, taskqueue.Task{Type: "mail", Priority: uint8(i % 3 / 2)})
			require.NoError(t, err)
			time.Sleep(10 * time.Second)
		}
		time.Sleep(10 * time.Second)
		_, text, _ := get(s, "/kind?queue=default&type=mail")
		assert.Equal(t, 3, strings.Count(text, "<svg role"))
		for _, want := range []string{"Runs a minute", "done: last ", "failed: last ", "at most 4.0", "How late runs begin", "How long runs take", "on average: last 100 ms", "30 runs in the last 6 hours", "10 dead"} {
			assert.Contains(t, text, want)
		}
		for _, span := range []string{"2d", "30d"} {
			_, text, _ = get(s, "/kind?queue=default&type=mail&span="+span)
			assert.Contains(t, text, "30 runs in the last")
		}
		_, text, _ = get(s, "/")
		row := text[strings.Index(text, `data-part="kinds"`):]
		for _, want := range []string{`data-label="Done">20<`, `data-label="Failed">10<`, `data-label="Takes">100 ms<`} {
			assert.Contains(t, row, want)
		}
		_, text, header := get(s, "/metrics")
		all := parsed(t, text, header)
		assert.EqualValues(t, 20, value(t, all, "taskqueue_kind_runs_total", "queue", "default", "kind", "mail", "end", "done"))
		h := all["taskqueue_kind_run_seconds"].GetMetric()[0].GetHistogram()
		assert.EqualValues(t, 30, h.GetSampleCount())
		assert.InDelta(t, 3, h.GetSampleSum(), 0.01)
		assert.Len(t, h.GetBucket(), 22)

		time.Sleep(7 * time.Hour)
		_, text, _ = get(s, "/kind?queue=default&type=mail")
		assert.Contains(t, text, "No run has ended in the last 6 hours")
		stop()
		require.NoError(t, <-ended)
	})
}

// The runs are settled in one call, so that many have yet to be summed up when the last one is settled.
func TestAWorkerNotesItsSumsWhenItStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		q, err := taskqueue.New(s)
		require.NoError(t, err)
		for range 100 {
			_, err = q.Enqueue(ctx, taskqueue.Task{Type: "mail"})
			require.NoError(t, err)
		}
		h := func(context.Context, *taskqueue.Claim) error { time.Sleep(time.Second); return nil }
		require.NoError(t, q.Work(ctx, taskqueue.Handlers{"mail": h}, taskqueue.Concurrency(100), taskqueue.WorkUntilEmpty()))
		_, text, _ := get(s, "/kind?queue=default&type=mail")
		assert.Contains(t, text, "100 runs in the last 6 hours")
	})
}

// Trouble looks different from nothing, in every view.
func TestAStoreThatDoesNotAnswerLooksLikeNoEmptyOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		fill(t, s, "mail", "")
		for _, at := range []string{"/", "/list?queue=mail&state=dead", "/task?queue=mail&id=dead0", "/task?id=dead0", "/kind?queue=mail&type=type"} {
			s.down.Store(true)
			status, text, _ := get(s, at)
			assert.Equal(t, http.StatusServiceUnavailable, status, at)
			assert.Contains(t, text, "The store does not answer:</strong> &lt;b&gt;refused", at)
			for _, never := range []string{"There is no", "No task", "Nothing", "No queue"} {
				assert.NotContains(t, text, never, at)
			}
			s.down.Store(false)
			status, text, _ = get(s, at)
			assert.Equal(t, http.StatusOK, status, at)
			assert.NotContains(t, text, "The store does not answer", at)
		}
		_, text, _ := get(open(t), "/")
		assert.Contains(t, text, "There is no queue yet")
		assert.Contains(t, text, "Nothing has failed")
		status, _, _ := get(s, "/kind?queue="+url.QueryEscape("nothing")+"&type=type")
		assert.Equal(t, http.StatusNotFound, status)
	})
}
