package pagetest

import (
	"html"
	"net/http"
	"net/http/httptest"
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

// post sends a form to the page, with headers, and returns where that sends the browser.
func post(h http.Handler, to, do string, headers ...string) (status int, text, location string) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, to, strings.NewReader(url.Values{"do": {do}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String(), w.Header().Get("Location")
}

func state(t *testing.T, s taskqueue.Store, queue, id string) string {
	t.Helper()
	i, err := s.Get(ctx, queue, id)
	if err != nil {
		return err.Error()
	}
	return i.State.String()
}

func TestThePageActsOnOneTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct{ id, do, did, is string }{
			{"dead0", "retry", "1 task was retried.", "ready"},
			{"dead0", "delete", "1 task was deleted.", taskqueue.ErrNotFound.Error()},
			{"failed0", "run", "1 task was made due.", "ready"},
			{"failed0", "cancel", "1 task was cancelled, or asked to stop.", "cancelled"},
			{"running0", "cancel", "1 task was cancelled, or asked to stop.", "running"},
			{"running0", "delete", "Nothing was done", "running"},
			{"done0", "retry", "Nothing was done", "done"},
			{"nobody", "retry", "Nothing was done", taskqueue.ErrNotFound.Error()},
		} {
			s := open(t)
			fill(t, s, "mail", "")
			p := page.New(s, page.AllowActions())
			_, text, _ := ask(p, http.MethodGet, "/")
			assert.Contains(t, text, "<dt>Dead letters</dt><dd>2<")
			status, _, to := post(p, "/act?queue=mail&id="+c.id+"&back="+url.QueryEscape("task?queue=mail&id="+c.id), c.do, "Sec-Fetch-Site", "same-origin")
			assert.Equal(t, http.StatusSeeOther, status, "%+v", c)
			assert.True(t, strings.HasPrefix(to, "task?"), to)
			assert.Equal(t, c.is, state(t, s, "mail", c.id), "%+v", c)
			_, text, _ = ask(p, http.MethodGet, "/"+to)
			assert.Contains(t, text, c.did, "%+v", c)
			_, text, _ = ask(p, http.MethodGet, "/")
			assert.Equal(t, c.id == "dead0", strings.Contains(text, "<dt>Dead letters</dt><dd>1<"), "the first page shows it at once")
		}
	})
}

func TestThePageActsOnAllThatAFilterFinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		fill(t, s, "mail", "")
		root, err := taskqueue.New(s)
		require.NoError(t, err)
		q := root.In("many")
		for range 3 {
			tasks := make([]taskqueue.Task, 500)
			for i := range tasks {
				tasks[i] = taskqueue.Task{Type: []string{"a", "b"}[i%2], Delay: 1e12, LimitKey: "k"}
			}
			_, err := q.EnqueueAll(ctx, tasks)
			require.NoError(t, err)
		}
		p := page.New(s, page.AllowActions())
		act := func(query, do, want string) {
			t.Helper()
			status, text, to := post(p, "/act?"+query, do)
			require.Equal(t, http.StatusSeeOther, status, text)
			_, text, _ = ask(p, http.MethodGet, "/"+strings.TrimPrefix(to, "./"))
			assert.Contains(t, text, want)
		}
		count := func(queue string, st taskqueue.State) int64 {
			t.Helper()
			got, err := s.Stats(ctx, queue)
			require.NoError(t, err)
			return got.States[st]
		}
		act("queue=mail&state=dead&type=other", "retry", "Nothing was done")
		act("queue=mail&state=dead&alike=other", "retry", "Nothing was done")
		act("queue=mail&state=dead&alike=dead+because+of+", "retry", "2 tasks were retried.")
		assert.EqualValues(t, 0, count("mail", taskqueue.StateDead))
		act("queue=mail&state=retrying&error=nothing", "cancel", "Nothing was done")
		act("queue=mail&state=retrying&error=because", "cancel", "3 tasks were cancelled")
		act("queue=many&state=scheduled&type=a&key=other", "delete", "Nothing was done")
		act("queue=many&state=scheduled&type=a&older=1", "delete", "Nothing was done")
		act("queue=many&state=scheduled&type=a&key=k", "delete", "750 tasks were deleted.")
		act("queue=many&state=scheduled", "run", "750 tasks were made due.")
		assert.EqualValues(t, 750, count("many", taskqueue.StateReady))
		for range 2 {
			_, err := q.EnqueueAll(ctx, tasks(500))
			require.NoError(t, err)
		}
		act("queue=many&state=ready", "cancel", "1,000 tasks were cancelled, or asked to stop. There may be more")
		assert.EqualValues(t, 750, count("many", taskqueue.StateReady))
		act("queue=mail", "pause", "The queue is paused")
		_, text, _ := get(s, "/", page.AllowActions())
		assert.Contains(t, text, `aria-label="Resume queue mail"`)
		act("queue=mail", "resume", "The queue goes on")
		st, err := s.Stats(ctx, "mail")
		require.NoError(t, err)
		assert.False(t, st.Settings.Paused)
	})
}

// "Delete all" of errors without a text in their first line was that of all errors of the type.
func TestTheButtonOfAGroupIsForThatGroupAlone(t *testing.T) {
	for _, text := range []string{"", "\n2 errors occurred", " \t\n"} {
		s := open(t)
		q, err := taskqueue.New(s)
		require.NoError(t, err)
		errs := map[string]string{"a": "disk full", "b": text}
		for id := range errs {
			_, err = q.Enqueue(ctx, taskqueue.Task{ID: id, Type: "t"})
			require.NoError(t, err)
		}
		got, err := s.Claim(ctx, taskstore.ClaimRequest{Queue: "default", Worker: "w", Nonce: "1", Max: 2, Lease: time.Minute})
		require.NoError(t, err)
		for _, run := range got.Tasks {
			_, err := s.Settle(ctx, "default", []taskstore.Outcome{{Ref: taskstore.Ref{ID: run.ID, Token: run.Token}, Kind: taskstore.Buried, Error: errs[run.ID]}})
			require.NoError(t, err)
		}
		p := page.New(s, page.AllowActions())
		_, body, _ := ask(p, http.MethodGet, "/")
		forms := regexp.MustCompile(`action="([^"]*state=dead[^"]*)"`).FindAllStringSubmatch(body, -1)
		for _, form := range forms {
			if to := html.UnescapeString(form[1]); !strings.Contains(to, "alike=disk") {
				status, _, _ := post(p, "/"+to, "delete")
				assert.Equal(t, http.StatusSeeOther, status)
			}
		}
		assert.Equal(t, taskqueue.ErrNotFound.Error(), state(t, s, "default", "b"), "%q", text)
		assert.Equal(t, "dead", state(t, s, "default", "a"), "it is of the other group than %q", text)
	}
}

func tasks(n int) []taskqueue.Task {
	tasks := make([]taskqueue.Task, n)
	for i := range tasks {
		tasks[i] = taskqueue.Task{Type: "c"}
	}
	return tasks
}

func TestARetryThatAUniqueKeyForbidsIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		q, err := taskqueue.New(s)
		require.NoError(t, err)
		for _, id := range []string{"first", "second"} {
			if id == "second" {
				_, err = q.Cancel(ctx, "first")
				require.NoError(t, err)
			}
			_, err := q.Enqueue(ctx, taskqueue.Task{ID: id, Type: "t", UniqueKey: "k", Retention: 1e12})
			require.NoError(t, err)
		}
		p := page.New(s, page.AllowActions())
		for _, query := range []string{"&id=first", "&state=cancelled"} {
			_, _, to := post(p, "/act?queue=default"+query, "retry")
			_, text, _ := ask(p, http.MethodGet, "/"+strings.TrimPrefix(to, "./"))
			assert.Contains(t, text, "1 left as they are: another task holds their unique key", query)
		}
	})
}

func TestWhatAnotherSiteSendsIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		fill(t, s, "mail", "")
		p := page.New(s, page.AllowActions())
		for _, headers := range [][]string{
			{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"},
			{"Origin", "https://attacker.example"}, {"Origin", "null"},
		} {
			for _, query := range []string{"&id=dead0", "&state=dead"} {
				status, text, _ := post(p, "/act?queue=mail"+query, "delete", headers...)
				assert.Equal(t, http.StatusForbidden, status, "%v", headers)
				assert.Contains(t, text, "another site")
			}
		}
		assert.Equal(t, "dead", state(t, s, "mail", "dead0"))
		status, _, _ := post(p, "/act?queue=mail&id=dead0", "delete", "Origin", "http://example.com") // the host of the request
		assert.Equal(t, http.StatusSeeOther, status)
		for _, to := range []string{"https://attacker.example/", "//attacker.example", "/\\attacker.example", "javascript:pwned()"} {
			_, _, at := post(p, "/act?queue=mail&id=dead1&back="+url.QueryEscape(to), "retry")
			assert.True(t, strings.HasPrefix(at, "./?"), "%s leads to %s", to, at)
		}
	})
}

func TestAnActThatCannotBeDoneIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		fill(t, s, "mail", "")
		p := page.New(s, page.AllowActions(), page.Queues("mail"))
		for _, c := range []struct {
			query, do, want string
			status          int
		}{
			{"queue=mail&id=dead0", "explode", "there is nothing of that name", http.StatusBadRequest},
			{"queue=mail&state=odd", "retry", "there is no &#34;odd&#34;", http.StatusBadRequest},
			{"queue=mail&state=dead&older=x", "retry", "a number of hours", http.StatusBadRequest},
			{"queue=reports&id=dead0", "retry", "does not show that queue", http.StatusNotFound},
		} {
			status, text, _ := post(p, "/act?"+c.query, c.do)
			assert.Equal(t, c.status, status, c.query)
			assert.Contains(t, text, c.want)
		}
		s.down.Store(true)
		for _, query := range []string{"queue=mail&id=dead0", "queue=mail&state=dead"} {
			status, text, _ := post(p, "/act?"+query, "retry")
			assert.Equal(t, http.StatusServiceUnavailable, status)
			assert.Contains(t, text, "&lt;b&gt;refused")
		}
	})
}

func TestThePageOnlyReadsUnlessItIsToldToAct(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		fill(t, s, "mail", "")
		for _, at := range []string{"/", "/list?queue=mail&state=dead", "/task?queue=mail&id=dead0", "/kind?queue=mail&type=type"} {
			_, text, _ := get(s, at)
			assert.NotContains(t, text, `method="post"`, at)
			_, text, _ = get(s, at, page.AllowActions())
			assert.Contains(t, text, `method="post"`, at)
		}
		status, text, _ := post(page.New(s), "/act?queue=mail&id=dead0", "delete")
		assert.Equal(t, http.StatusMethodNotAllowed, status)
		assert.Contains(t, text, "AllowActions")
		assert.Equal(t, "dead", state(t, s, "mail", "dead0"))
		for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodGet} {
			status, _, _ := ask(page.New(s, page.AllowActions()), method, "/act?queue=mail&id=dead0&do=delete")
			assert.NotEqual(t, http.StatusSeeOther, status, method)
		}
		assert.Equal(t, "dead", state(t, s, "mail", "dead0"), "only a form acts")
	})
}
