package asyncz_test

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/async/asyncz"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errPlanted = errors.New("planted <b>")

// inBubble calls f in a bubble with a root of its own.
func inBubble(t *testing.T, f func(t *testing.T, ctx context.Context)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, asynctest.Context(t)) })
}

// get returns what the page answers a browser; values are names and values of parameters.
func get(t *testing.T, page http.Handler, values ...string) *httptest.ResponseRecorder {
	t.Helper()
	q := url.Values{}
	for i := 0; i < len(values); i += 2 {
		q.Set(values[i], values[i+1])
	}
	r := httptest.NewRequest(http.MethodGet, "/?"+q.Encode(), nil)
	r.Header.Set("Accept", "text/html")
	w := httptest.NewRecorder()
	page.ServeHTTP(w, r)
	return w
}

// html returns the document, which has to be well formed.
func html(t *testing.T, page http.Handler, values ...string) string {
	t.Helper()
	w := get(t, page, values...)
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	require.Equal(t, "text/html; charset=utf-8", w.Header().Get("Content-Type"))
	text := w.Body.String()
	d := xml.NewDecoder(strings.NewReader(regexp.MustCompile(`(?s)<(script|style)>.*?</(script|style)>`).ReplaceAllString(text, "")))
	d.Strict, d.AutoClose, d.Entity = false, append(xml.HTMLAutoClose, "polyline"), xml.HTMLEntity
	ids := make(map[string]bool)
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		if e, ok := token.(xml.StartElement); ok {
			for _, a := range e.Attr {
				if a.Name.Local == "id" {
					require.False(t, ids[a.Value], "two elements have the id %s", a.Value)
					ids[a.Value] = true
				}
			}
		}
	}
	return text
}

// plain returns the text of the document without tags, in single spaces.
func plain(document string) string {
	body := regexp.MustCompile(`(?s)<(script|style)>.*?</(script|style)>`).ReplaceAllString(document, "")
	body = regexp.MustCompile(`<[^>]*>`).ReplaceAllString(body, " ")
	return strings.Join(strings.Fields(body), " ")
}

// waits starts a task that waits until end is closed.
func waits(ctx context.Context, end chan struct{}, name string, opts ...async.TaskOption) {
	async.Go(ctx, func(context.Context) error { <-end; return nil }, append(opts, async.Name(name))...)
}

// troubled starts what has each problem there is, but for a ring. Nothing of it is told of in the scope of ctx.
func troubled(ctx context.Context, end chan struct{}) {
	scope := func(name string, body func(ctx context.Context) error, opts ...async.ScopeOption) {
		async.Go(ctx, func(ctx context.Context) error {
			_ = async.Scope(ctx, body, append(opts, async.Name(name))...)
			return nil
		}, async.Name("around "+name))
	}
	async.Start(ctx, func(context.Context) error { <-end; return nil }, async.Name("deaf")).Cancel(errPlanted)
	scope("uploads", func(ctx context.Context) error {
		for i := range 4 {
			waits(ctx, end, fmt.Sprint("upload ", i))
		}
		return nil
	}, async.Limit(1))
	scope("flushes", func(ctx context.Context) error {
		async.Go(ctx, func(context.Context) error { return errPlanted }, async.Name("flush"),
			async.Restart(async.RestartPolicy{Interval: async.Every(time.Hour)}))
		<-end
		return nil
	})
	scope("forgets", func(ctx context.Context) error {
		async.Execute(ctx, func(context.Context) (int, error) { return 0, errPlanted })
		<-end
		return nil
	})
	time.Sleep(90 * time.Minute) // flush has failed twice
}

func TestEachProblemIsOnThePage(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		end := make(chan struct{})
		defer close(end)
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		troubled(inner, end)
		page := asyncz.Handler(asyncz.Of(ctx))
		document := html(t, page)
		text := plain(document)
		for _, what := range []string{
			"STRAGGLER #", "deaf was told to stop: *errors.errorString; and is still running",
			"limit 1 of #", "uploads : 3 queued", "held by #", "upload 0 (running)",
			"flush is started again: 2 failures, the last *errors.errorString",
			"forgets has futures that have failed: 1, which nobody has asked for",
			"Stragglers 1", "Full limits 1", "Restarts 1", "Unclaimed 1",
		} {
			require.Contains(t, strings.ToLower(text), strings.ToLower(what))
		}
		require.NotContains(t, document, "planted", "texts are shown to those who ask")
		require.Contains(t, plain(html(t, asyncz.Handler(asyncz.Of(ctx), asyncz.Texts()))), "planted")
	})
}

// The ring is drawn once round, with whom it holds up, and when it breaks; its tasks are marked and can be reached.
func TestARingOnThePage(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		known, fail := make(chan struct{}), make(chan struct{})
		var choice *async.Future[int]
		choice = async.Any(ctx, func(ctx context.Context) (int, error) {
			<-known
			return choice.Await(ctx, time.Hour)
		}, func(context.Context) (int, error) { <-fail; return 0, errPlanted })
		close(known)
		async.Go(ctx, func(ctx context.Context) error { _, _ = choice.Wait(ctx); return nil }, async.Name("onlooker"))
		synctest.Wait()
		close(fail)
		synctest.Wait()
		page := asyncz.Handler(asyncz.Of(ctx))
		document := html(t, page)
		text := plain(document)
		require.Regexp(t, `✗ ring #\d+\.\d+ async.Any needs its contender → #\d+\.\d+ \S+ awaits → #\d+\.\d+ async.Any ?; a limit ends one of the waits in 60m`, text)
		require.Regexp(t, `holds up .*#\d+\.\d+ onlooker`, text)
		link := regexp.MustCompile(`<li class="ring".*?href="\?([^"#]*)#(t[\d.]+)"`).FindStringSubmatch(strings.ReplaceAll(document, "\n", ""))
		require.NotNil(t, link)
		values, err := url.ParseQuery(strings.ReplaceAll(link[1], "&amp;", "&"))
		require.NoError(t, err)
		there := html(t, page, "name", values.Get("name"))
		require.Contains(t, there, `id="`+link[2]+`"`, "the row that the ring leads to")
		only := html(t, page, "problem", "ring")
		require.Contains(t, plain(only), "3 of 4 tasks")
		require.NotContains(t, only, `found"><span class="name"><bdi>onlooker`)
		time.Sleep(30 * time.Minute)
		require.Contains(t, plain(html(t, page)), "seen for 30m")
		choice.Cancel(nil)
	})
}

func TestWhatIsFoundByName(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		end := make(chan struct{})
		defer close(end)
		async.Go(ctx, func(ctx context.Context) error {
			waits(ctx, end, "needle")
			waits(ctx, end, "hay")
			<-end
			return nil
		}, async.Name("stack"))
		waits(ctx, end, "barn")
		synctest.Wait()
		page := asyncz.Handler(asyncz.Of(ctx))
		for _, test := range []struct {
			values     []string
			has, hasNo string
		}{
			{nil, "needle hay barn stack", ""},
			{[]string{"name", "NEEDLE"}, "needle stack", "hay barn"},
			{[]string{"name", "page_test.go"}, "needle hay barn stack", ""},
			{[]string{"name", "nothing"}, "", "needle hay barn stack"},
			{[]string{"state", "running"}, "needle hay barn stack", ""},
			{[]string{"state", "told"}, "", "needle hay barn stack"},
			{[]string{"problem", "ring"}, "", "needle hay barn stack"},
			{[]string{"sort", "name"}, "needle hay barn stack", ""},
		} {
			document := html(t, page, test.values...)
			for _, name := range strings.Fields(test.has) {
				require.Contains(t, document, "<bdi>"+name+"</bdi>", test.values)
			}
			for _, name := range strings.Fields(test.hasNo) {
				require.NotContains(t, document, "<bdi>"+name+"</bdi>", test.values)
			}
		}
		id := regexp.MustCompile(`id="t([\d.]+)"[^>]*><details open><summary[^>]*><span class="name"><bdi>stack`).FindStringSubmatch(html(t, page))
		require.NotNil(t, id)
		under := html(t, page, "under", id[1])
		require.Contains(t, under, "<bdi>needle</bdi>")
		require.NotContains(t, under, "<bdi>barn</bdi>")
		require.Contains(t, plain(under), "Only #"+id[1]+" and what is in it. 3 of 5 tasks")
		require.NotContains(t, get(t, page, "under", id[1], "format", "text").Body.String(), "barn")
		require.Contains(t, get(t, page, "under", id[1], "format", "text").Body.String(), "3 tasks")
		require.Equal(t, http.StatusNotFound, get(t, page, "under", "77.77").Code)
		require.Equal(t, http.StatusNotFound, get(t, page, "format", "pdf").Code)
	})
}

// Alike tasks are one row, deep ones are folded; both can be shown.
func TestFolding(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		end := make(chan struct{})
		defer close(end)
		for i := range 300 {
			waits(ctx, end, fmt.Sprint("fetch ", i))
		}
		var deaf *async.Future[struct{}]
		var deep func(ctx context.Context, n int)
		deep = func(ctx context.Context, n int) {
			async.Go(ctx, func(ctx context.Context) error {
				if n < 250 {
					deep(ctx, n+1)
				} else {
					deaf = async.Start(ctx, func(context.Context) error { <-end; return nil }, async.Name("deaf"))
				}
				<-end
				return nil
			}, async.Name(fmt.Sprint("level", n)))
		}
		deep(ctx, 1)
		synctest.Wait()
		page := asyncz.Handler(asyncz.Of(ctx))
		first := html(t, page)
		require.Contains(t, plain(first), "×300 fetch 0")
		require.NotContains(t, first, "<bdi>fetch 1</bdi>")
		require.Contains(t, html(t, page, "alike", "1"), "<bdi>fetch 1</bdi>")
		require.Contains(t, first, "<bdi>level2</bdi>")
		require.NotContains(t, first, "<bdi>level3</bdi>")
		require.Contains(t, plain(first), "▸ 1 inside")
		more := regexp.MustCompile(`href="\?open=([\d.]+)#`).FindStringSubmatch(first)
		require.NotNil(t, more)
		require.Contains(t, html(t, page, "open", more[1]), "<bdi>level3</bdi>")
		all := html(t, page, "open", "all")
		require.Contains(t, all, "<bdi>level100</bdi>")
		require.Less(t, strings.Count(all, "<details"), 60, "they are not nested too deeply")
		require.Contains(t, html(t, page, "name", "level100"), "<bdi>level100</bdi>", "what is looked for is there at any depth")
		id := regexp.MustCompile(`id="t([\d.]+)"[^>]*><[^>]*><span class="name">[^<]*<a [^>]*>×300`).FindStringSubmatch(first)
		require.NotNil(t, id)
		one := html(t, page, "name", "#"+id[1])
		require.Equal(t, 1, strings.Count(one, ` found"`), "and not those whose ID begins so")
		require.Contains(t, one, "<bdi>fetch 0</bdi>")
		deaf.Cancel(nil)
		time.Sleep(time.Second)
		require.Contains(t, html(t, page), "<bdi>deaf</bdi>", "the way to a problem is unfolded")
	})
}

// A document is bounded, and says what it has left out.
func TestADocumentIsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		end := make(chan struct{})
		defer close(end)
		for i := range 6000 {
			waits(ctx, end, fmt.Sprint("fetch ", i))
		}
		synctest.Wait()
		page := asyncz.Handler(asyncz.Of(ctx))
		document := html(t, page, "alike", "1")
		require.LessOrEqual(t, strings.Count(document, `class="row"`), 2000)
		require.Less(t, len(document), 1<<20)
		require.Contains(t, plain(document), "2,000 of 6,001 tasks; there was no room for 4,001 more")
		require.Regexp(t, `×3,50\d fetch #`, plain(html(t, page)), "those that are in no node are counted")
	})
}

func TestNamesRunNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		end := make(chan struct{})
		defer close(end)
		waits(ctx, end, `<script>alert(1)</script>"'><img src=x>`)
		waits(ctx, end, "\x1b[31mred\xff")
		synctest.Wait()
		page := asyncz.Handler(asyncz.Of(ctx), asyncz.Link("<i>", "javascript:alert(1)"))
		for _, values := range [][]string{nil, {"name", `"><script>alert(2)</script>`}, {"format", "saved"}} {
			document := html(t, page, values...)
			require.NotContains(t, document, "<script>alert")
			require.NotContains(t, document, "<img src=x>")
			require.NotContains(t, document, "\x1b")
			require.NotContains(t, document, `href="javascript:`)
		}
	})
}

func TestFormats(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		end := make(chan struct{})
		defer close(end)
		waits(ctx, end, "only one")
		synctest.Wait()
		page := asyncz.Handler(asyncz.Of(ctx), asyncz.Link("pprof", "/debug/pprof/"))
		var tree struct {
			Schema string
			Nodes  []struct{ Name string }
		}
		answer := get(t, page, "format", "json")
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &tree))
		require.Equal(t, "ambit-tree/1", tree.Schema)
		require.Equal(t, "only one", tree.Nodes[1].Name)
		require.Equal(t, "application/json", answer.Header().Get("Content-Type"))

		var text strings.Builder
		require.NoError(t, async.Dump(&text, async.Of(ctx)))
		curl := httptest.NewRecorder()
		page.ServeHTTP(curl, httptest.NewRequest(http.MethodGet, "/", nil))
		head := regexp.MustCompile(`(?m)^async tree .*$`)
		require.Equal(t, head.ReplaceAllString(text.String(), ""), head.ReplaceAllString(curl.Body.String(), ""), "as Dump")
		require.Equal(t, curl.Body.String(), get(t, page, "format", "text").Body.String())
		for line := range strings.Lines(get(t, page, "format", "text", "width", "40").Body.String()) {
			require.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), 40)
		}

		require.Contains(t, html(t, page), `href="/debug/pprof/"`)
		require.Contains(t, html(t, page), "<script>")
		saved := get(t, page, "format", "saved")
		require.Contains(t, saved.Header().Get("Content-Disposition"), "attachment")
		require.NotContains(t, saved.Body.String(), "<script")
		require.NotContains(t, saved.Body.String(), `href="?name`)
		require.NotContains(t, html(t, page, "still", "1"), "http-equiv=\"refresh\"")
	})
}

func TestStacksAreShownOnRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		end := make(chan struct{})
		defer close(end)
		deaf := async.Start(ctx, func(context.Context) error { <-end; return nil }, async.Name("deaf"))
		deaf.Cancel(nil)
		synctest.Wait()
		page := asyncz.Handler(asyncz.Of(ctx))
		require.NotContains(t, html(t, page), "TestStacksAreShownOnRequest.func")
		require.Contains(t, html(t, page, "stacks", "1"), "TestStacksAreShownOnRequest.func")
		require.Equal(t, http.StatusForbidden, get(t, asyncz.Handler(asyncz.NoStacks()), "stacks", "1").Code)
	})
}
