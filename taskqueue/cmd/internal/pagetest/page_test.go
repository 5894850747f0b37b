package pagetest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
	"github.com/ambit-go/ambit/taskqueue/page"
	taskstore "github.com/ambit-go/ambit/taskqueue/store"
)

var ctx = context.Background()

// A store that can be cut off.
type store struct {
	taskqueue.NoteStore
	down atomic.Bool
}

func (s *store) refused() error {
	if s.down.Load() {
		return errors.New("<b>refused</b>")
	}
	return nil
}

func (s *store) Queues(ctx context.Context) ([]string, error) {
	if err := s.refused(); err != nil {
		return nil, err
	}
	return s.NoteStore.Queues(ctx)
}

func (s *store) Get(ctx context.Context, queue, id string) (taskqueue.Info, error) {
	if err := s.refused(); err != nil {
		return taskqueue.Info{}, err
	}
	return s.NoteStore.Get(ctx, queue, id)
}

func (s *store) Act(ctx context.Context, queue, id string, act taskstore.Act) (bool, error) {
	if err := s.refused(); err != nil {
		return false, err
	}
	return s.NoteStore.Act(ctx, queue, id, act)
}

func open(t *testing.T) *store {
	t.Helper()
	s := &store{NoteStore: memstore.New().(taskqueue.NoteStore)}
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

// get asks a page that has looked at nothing yet.
func get(s taskqueue.Store, url string, opts ...page.Option) (status int, body string, header http.Header) {
	return ask(page.New(s, opts...), http.MethodGet, url)
}

func ask(h http.Handler, method, url string) (status int, body string, header http.Header) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, url, nil))
	b, err := io.ReadAll(w.Result().Body)
	if err != nil {
		panic(err)
	}
	return w.Code, string(b), w.Header()
}

// hostile is what somebody may try to have run by the browser of another.
const hostile = "</script></style><script>pwned()</script><img src=x onerror=pwned()>\"' onmouseover=pwned() {{.}} \\\n\u202e"

// fill makes tasks in all states in a queue, whose texts have something in them.
func fill(t *testing.T, s taskqueue.Store, queue, something string) {
	t.Helper()
	root, err := taskqueue.New(s)
	require.NoError(t, err)
	q := root.In(queue)
	claim := func(kind string, n int) []taskqueue.Info {
		for i := range n {
			_, err := q.Enqueue(ctx, taskqueue.Task{ID: kind + strconv.Itoa(i) + something, Type: "type" + something,
				Payload: []byte("payload of " + kind + something), MaxFailures: 5, Priority: 3, Retention: time.Hour})
			require.NoError(t, err)
		}
		got, err := s.Claim(ctx, taskstore.ClaimRequest{Queue: queue, Worker: "worker" + something, Nonce: kind, Max: n, Lease: time.Hour})
		require.NoError(t, err)
		require.Len(t, got.Tasks, n)
		return got.Tasks
	}
	settle := func(kind string, n int, how taskstore.OutcomeKind) {
		for _, run := range claim(kind, n) {
			_, err := s.Settle(ctx, queue, []taskstore.Outcome{{Ref: taskstore.Ref{ID: run.ID, Token: run.Token}, Kind: how, After: time.Hour, Error: kind + " because of " + something}})
			require.NoError(t, err)
		}
	}
	settle("dead", 2, taskstore.Buried)
	settle("failed", 3, taskstore.Failed)
	settle("done", 4, taskstore.Succeeded)
	runs := claim("running", 2)
	_, err = s.Extend(ctx, taskstore.ExtendRequest{Queue: queue, Worker: "worker" + something, Lease: time.Hour,
		Refs: []taskstore.Ref{{ID: runs[0].ID, Token: runs[0].Token}}, Progress: map[string][]byte{runs[0].ID: []byte("half" + something)}})
	require.NoError(t, err)
	_, err = q.Cancel(ctx, runs[1].ID)
	require.NoError(t, err)
	_, err = s.Tick(ctx, taskqueue.Tick{Queue: queue, Name: "nightly" + something, Schedule: "@daily" + something, At: time.Now().Add(-time.Hour),
		Task: taskqueue.Task{ID: "tick" + something, Type: "t", MaxFailures: 1, MaxCrashes: 1, RunAt: time.Now().Add(time.Hour)}})
	require.NoError(t, err)
	require.NoError(t, q.Configure(ctx, func(set *taskqueue.Settings) {
		set.Paused, set.Concurrency, set.Rate, set.Burst, set.MaxDead = true, 7, 2.5, 4, 1234
	}))
}

func TestThePageTellsWhatThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		fill(t, s, "mail", "")
		fill(t, s, "reports", "")
		status, text, _ := get(s, "/", page.Name("redis://somewhere"))
		assert.Equal(t, http.StatusOK, status)
		for _, want := range []string{
			"redis://somewhere", "mail", "reports", "paused", "at most 7 run, at most 2.5 a second, 4 at once, 1,234 dead letters kept",
			"dead because of", "failed because of", "type", "running0", "worker", "half", "asked to stop",
			"nightly", "@daily", "60 min 0 s ago", ">in ",
			"As of",
		} {
			assert.Contains(t, text, want)
		}
		status, text, _ = get(s, "/?queue=mail")
		assert.Equal(t, http.StatusOK, status)
		assert.NotContains(t, text, "reports")
		status, text, _ = get(s, "/", page.Queues("reports"))
		assert.Equal(t, http.StatusOK, status)
		assert.NotContains(t, text, "mail")
		status, text, _ = get(s, "/?queue=nothing")
		assert.Equal(t, http.StatusNotFound, status)
		assert.Contains(t, text, "There is no such queue")
		_, text, _ = get(open(t), "/")
		assert.Contains(t, text, "taskq enqueue")
	})
}

// hidden are values that nobody sees, which are sent back as they are.
var hidden = regexp.MustCompile(`(type="hidden" name="\w+"|<input name="\w+") value="[^"]*"`)

func TestWhatTasksBringAlongIsEscaped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		fill(t, s, "q"+hostile, hostile)
		q, id := url.QueryEscape("q"+hostile), url.QueryEscape("dead0"+hostile)
		for _, at := range []string{
			"/", "/?queue=" + q, "/?queue=" + url.QueryEscape(hostile), "/list?state=dead&queue=" + q, "/list?state=running&queue=" + q,
			"/list?state=dead&error=" + id + "&type=" + id + "&key=" + id + "&queue=" + q, "/list?state=" + id + "&queue=" + q,
			"/task?queue=" + q + "&id=" + id, "/task?id=" + id, "/task?id=" + url.QueryEscape(hostile), "/kind?queue=" + q + "&type=" + url.QueryEscape("type"+hostile),
			"/?did=retry&n=" + id, "/?did=" + id, "/list?older=" + id + "&queue=" + q,
		} {
			_, text, _ := get(s, at, page.Name(hostile), page.AllowActions())
			assert.Equal(t, 1, strings.Count(text, "<script"), "only that of the page")
			assert.Equal(t, 1, strings.Count(text, "<style"))
			text = hidden.ReplaceAllString(text, "")
			for _, bad := range []string{"<img", "\u202e", `"' onmouseover`} {
				assert.Zero(t, strings.Count(text, bad), bad)
			}
		}
		_, text, _ := get(s, "/")
		for _, want := range []string{"&lt;img", `\u{202e}`} {
			assert.Positive(t, strings.Count(text, want), want)
		}
	})
}

func TestTheSameAsJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		fill(t, s, "q"+hostile, hostile)
		fill(t, s, "mail", "")
		type answer struct {
			Store, Error string
			Queues       []struct {
				Queue    string
				States   map[string]int
				Counts   map[string]int
				Settings taskqueue.Settings
			}
			Running  []struct{ Queue, ID, Progress, Worker string }
			Failures []struct {
				Queue, Type, Error string
				Dead, Retrying     int
			}
			Periodic []struct {
				Name string
				Next time.Time
			}
		}
		var all, one answer
		status, text, header := get(s, "/api", page.Name("memory"))
		assert.Equal(t, http.StatusOK, status)
		assert.Equal(t, "application/json", header.Get("Content-Type"))
		require.NoError(t, json.Unmarshal([]byte(text), &all))
		assert.Equal(t, "memory", all.Store)
		require.Len(t, all.Queues, 2)
		assert.Len(t, all.Failures, 4)
		_, text, _ = get(s, "/api?queue="+url.QueryEscape("q"+hostile))
		require.NoError(t, json.Unmarshal([]byte(text), &one))
		require.Len(t, one.Queues, 1)
		q := one.Queues[0]
		assert.Equal(t, "q"+hostile, q.Queue, "names are as they are")
		assert.Equal(t, map[string]int{"scheduled": 1, "ready": 0, "running": 2, "retrying": 3, "done": 4, "dead": 2, "cancelled": 0, "waiting": 0}, filled(q.States))
		assert.Equal(t, 4, q.Counts["done"])
		assert.True(t, q.Settings.Paused)
		require.Len(t, one.Running, 2)
		assert.Equal(t, "worker"+hostile, one.Running[0].Worker)
		require.Len(t, one.Failures, 2)
		assert.Equal(t, []int{2, 3}, []int{one.Failures[0].Dead, one.Failures[1].Retrying})
		require.Len(t, one.Periodic, 1)
		assert.True(t, one.Periodic[0].Next.IsZero(), "a schedule that this program does not understand")
		status, text, _ = get(s, "/api?queue=nothing")
		assert.Equal(t, http.StatusNotFound, status)
		require.NoError(t, json.Unmarshal([]byte(text), &one))
		assert.Empty(t, one.Queues)
	})
}

// filled has every state: a store may leave out those of which there are none.
func filled(states map[string]int) map[string]int {
	for st := taskqueue.StateScheduled; st <= taskqueue.StateWaiting; st++ {
		states[st.String()] += 0
	}
	return states
}

func TestAStoreThatDoesNotAnswerIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		fill(t, s, "mail", "")
		s.down.Store(true)
		status, text, _ := get(s, "/")
		assert.Equal(t, http.StatusServiceUnavailable, status)
		assert.Contains(t, text, "The store does not answer:</strong> &lt;b&gt;refused")
		status, text, _ = get(s, "/healthz")
		assert.Equal(t, http.StatusServiceUnavailable, status)
		assert.Contains(t, text, "refused")
		status, text, _ = get(s, "/api")
		assert.Equal(t, http.StatusServiceUnavailable, status)
		assert.Contains(t, text, `"error":`)
		status, text, _ = get(s, "/api?queue=mail")
		assert.Equal(t, http.StatusServiceUnavailable, status)
		assert.Contains(t, text, `"error":`)

		s.down.Store(false)
		status, text, _ = get(s, "/healthz")
		assert.Equal(t, http.StatusOK, status)
		assert.Equal(t, "ok\n", text)
	})
}

func TestThePageOnlyReads(t *testing.T) {
	s := open(t)
	p := page.New(s)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodTrace, "PURGE"} {
		for _, at := range []string{"/", "/api", "/metrics", "/healthz", "/nothing"} {
			status, _, header := ask(p, method, at)
			assert.Equal(t, http.StatusMethodNotAllowed, status, "%s %s", method, at)
			assert.Equal(t, "GET, HEAD", header.Get("Allow"))
		}
	}
	server := httptest.NewServer(p)
	defer server.Close()
	r, err := http.Head(server.URL)
	require.NoError(t, err)
	defer func() { _ = r.Body.Close() }()
	b, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, r.StatusCode)
	assert.Empty(t, b)
	status, text, _ := get(s, "/other")
	assert.Equal(t, http.StatusNotFound, status)
	assert.Contains(t, text, "/metrics")
}

func TestEveryAnswerHasTheHeadersThatKeepItToItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := page.New(open(t))
		for _, at := range []string{"/", "/api", "/metrics", "/healthz", "/nothing"} {
			_, _, header := ask(p, http.MethodGet, at)
			policy := header.Get("Content-Security-Policy")
			for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
				assert.Contains(t, policy, want)
			}
			assert.NotContains(t, policy, "unsafe")
			assert.Equal(t, "nosniff", header.Get("X-Content-Type-Options"))
			assert.Equal(t, "DENY", header.Get("X-Frame-Options"))
			assert.Equal(t, "same-origin", header.Get("Referrer-Policy"))
			assert.Equal(t, "no-store", header.Get("Cache-Control"))
		}
	})
}

func TestNothingComesFromElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		fill(t, s, "mail", "")
		_, text, _ := get(s, "/")
		without := strings.ReplaceAll(text, "http://www.w3.org/2000/svg", "")
		for _, bad := range []string{"http:", "https:", "src=", "@import", "url(", "<link rel=\"stylesheet"} {
			assert.NotContains(t, strings.ReplaceAll(without, "'", "\""), bad)
		}
	})
}

func TestThePageUnderAPrefix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		fill(t, s, "mail", "")
		mux := http.NewServeMux()
		mux.Handle("/tasks/", http.StripPrefix("/tasks", page.New(s)))
		status, text, _ := ask(mux, http.MethodGet, "/tasks/")
		assert.Equal(t, http.StatusOK, status)
		assert.NotContains(t, text, `href="/`, "links are relative")
		status, _, _ = ask(mux, http.MethodGet, "/tasks/api")
		assert.Equal(t, http.StatusOK, status)
	})
}
