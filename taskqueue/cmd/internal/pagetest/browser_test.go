package pagetest

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/page"
)

// patience bounds what a test waits for. None of them depends on it.
const patience = 4 * time.Minute

// A tab is a page in a real browser.
type tab struct {
	*testing.T
	ctx context.Context
	url string
	// asked counts the requests for the page itself.
	asked *atomic.Int64
	down  *atomic.Bool // the server answers no more

	mu       sync.Mutex
	troubles []string // what the browser complains of
}

// browse starts a Chromium, and a server for the page of s.
func browse(t *testing.T, s taskqueue.Store, opts ...page.Option) *tab {
	t.Helper()
	p := page.New(s, append([]page.Option{page.Name("memory")}, opts...)...)
	b := &tab{T: t, asked: new(atomic.Int64), down: new(atomic.Bool)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b.down.Load() {
			panic(http.ErrAbortHandler)
		}
		if r.URL.Path == "/" {
			b.asked.Add(1)
		}
		p.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	b.url = server.URL
	flags := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(patience))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, flags...)
	t.Cleanup(cancel)
	b.ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Listen(b.ctx, b.hear))
	call(b, log.Enable, cdp.Empty{})
	return b
}

// chromium is the browser. Where checks are run for others it must be there.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const what = "there is no Chromium: make needs installs it (apt-get install chromium)"
	if os.Getenv("CI") == "true" {
		t.Fatal(what)
	}
	t.Skip(what)
	return ""
}

func (b *tab) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.troubles = append(b.troubles, e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		b.troubles = append(b.troubles, string(e.Entry.Source)+": "+e.Entry.Text)
	}
}

// quiet holds that the browser has had nothing to complain of.
func (b *tab) quiet() {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Empty(b, b.troubles)
}

// call sends a command of the browser's protocol.
func call[P, R any](b *tab, what cdp.Command[P, R], p P) R {
	b.Helper()
	answer, err := chromedp.Run(b.ctx, func(ctx context.Context, t *chromedp.Target) (R, error) { return cdp.Call(ctx, t, what, p) })
	require.NoError(b, err)
	return answer
}

// click clicks at an element. The page may put another one in its place before it is clicked at.
func (b *tab) click(selector string) {
	b.Helper()
	err := chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS(selector)))
	for err != nil && b.ctx.Err() == nil && isGone(err) {
		err = chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS(selector)))
	}
	require.NoError(b, err)
}

// isGone reports whether the browser says that a node, or a page, is not there any more.
func isGone(err error) bool {
	var said *cdproto.Error
	return errors.As(err, &said) && said.Code == -32000 || errors.Is(err, chromedp.ErrInvalidDimensions)
}

func (b *tab) open(at string) {
	b.Helper()
	err := chromedp.Do(b.ctx, chromedp.Navigate(b.url+at))
	for err != nil && strings.Contains(err.Error(), "net::ERR_ABORTED") { // by the page, which loads itself again
		err = chromedp.Do(b.ctx, chromedp.Navigate(b.url+at))
	}
	require.NoError(b, err)
}

// eval returns what an expression is in the page, or in the next if the page has gone meanwhile.
func eval[T any](b *tab, expression string) T {
	b.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	for err != nil && b.ctx.Err() == nil && isGone(err) {
		v, err = chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	}
	require.NoError(b, err)
	return v
}

// until waits until an expression is true in the page, and all of that is there: it comes in pieces.
func (b *tab) until(expression string) {
	b.Helper()
	for deadline := time.Now().Add(patience / 2); ; time.Sleep(20 * time.Millisecond) {
		is, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("document.readyState !== 'loading' && ("+expression+")")) // it may be about to load another page
		if err == nil && is {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("it does not become true: %s (%v)\n%s", expression, err, eval[string](b, "document.body.innerText"))
		}
	}
}

func (b *tab) size(width, height int64, scheme string) {
	b.Helper()
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600})
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

// text is that of the page when it is there as a whole.
func (b *tab) text() string {
	b.Helper()
	const whole = `document.readyState === "complete" ? document.body.innerText : ""`
	text := eval[string](b, whole)
	for text == "" {
		require.NoError(b, b.ctx.Err())
		text = eval[string](b, whole)
	}
	return text
}

// watchPwned has the page know the function that what is hostile calls.
const watchPwned = `window.pwned = () => { document.documentElement.dataset.pwned = "yes" }`

func TestTheBrowserRunsNothingThatTasksBringAlong(t *testing.T) {
	s := open(t)
	fill(t, s, "q"+hostile, hostile)
	b := browse(t, s)
	call(b, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: watchPwned})
	b.open("/")
	asked := b.asked.Load()
	shown := func() {
		t.Helper()
		assert.Contains(t, b.text(), `</script></style><script>pwned()</script><img src=x onerror=pwned()>"' onmouseover=pwned() {{.}} \\n\u{202e}`, "it is shown as it is")
		assert.Equal(t, 0, eval[int](b, `document.querySelectorAll("img, iframe, object, [onmouseover], [onerror]").length`))
		assert.Equal(t, 1, eval[int](b, "document.scripts.length"))
		assert.Empty(t, eval[string](b, "document.documentElement.dataset.pwned || ''"))
	}
	shown()
	b.click("#h-queues + div th a")
	b.until(`location.search.length > 0`)
	b.until(`document.body !== null && document.body.innerText.includes("Only queue")`)
	shown()
	for b.asked.Load() < asked+3 { // the page has renewed itself
		require.NoError(t, b.ctx.Err())
		time.Sleep(20 * time.Millisecond)
	}
	shown()
	b.quiet()
}

func TestThePageRenewsItself(t *testing.T) {
	s := open(t)
	fill(t, s, "mail", "")
	q, err := taskqueue.New(s)
	require.NoError(t, err)
	b := browse(t, s)
	b.open("/")
	b.until(`document.getElementById("live").textContent === "Live"`)
	eval[any](b, `document.querySelector('[data-part="failures"] td a').focus()`)
	_, err = q.In("new").Enqueue(ctx, taskqueue.Task{ID: "x", Type: "t"})
	require.NoError(t, err)
	_, err = q.In("mail").Delete(ctx, "dead0")
	require.NoError(t, err)
	b.until(`document.querySelector('[data-part="queues"]').innerText.includes("new") && document.querySelector('[data-part="failures"] td.n').innerText === "1"`)
	assert.True(t, eval[bool](b, `document.activeElement === document.querySelector('[data-part="failures"] td a')`), "the focus stays")

	b.click("#pause")
	b.until(`document.getElementById("live").textContent === "Paused"`)
	asked := b.asked.Load()
	assert.Equal(t, "ok\n", eval[string](b, `document.dispatchEvent(new Event("visibilitychange")), fetch("healthz").then(r => r.text())`))
	assert.LessOrEqual(t, b.asked.Load(), asked+1, "at most the request that was under way")
	b.click("#pause")
	b.until(`document.getElementById("live").textContent === "Live"`)
	b.quiet()

	b.down.Store(true)
	b.until(`document.getElementById("live").className === "off"`)
	assert.Contains(t, b.text(), "taskq serve does not answer")
	b.down.Store(false)
	b.until(`document.getElementById("live").className === ""`)
	s.down.Store(true)
	b.until(`document.body.innerText.includes("The store does not answer")`)
	assert.Contains(t, b.text(), "What follows is what it has told")
	s.down.Store(false)
	b.until(`!document.body.innerText.includes("The store does not answer")`)
}

func TestThePageWithoutJavaScript(t *testing.T) {
	s := open(t)
	fill(t, s, "mail", "")
	b := browse(t, s)
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.open("/")
	text := b.text()
	for _, want := range []string{"mail", "dead because of", "failed because of", "running0", "nightly", "Stop renewing"} {
		assert.Contains(t, text, want)
	}
	assert.NotContains(t, text, "Pause updates", "what does nothing is not shown")
	asked := b.asked.Load()
	for b.asked.Load() == asked {
		require.NoError(t, b.ctx.Err(), "it is loaded again after a while")
		time.Sleep(20 * time.Millisecond)
	}
	b.open("/?still")
	assert.Contains(t, b.text(), "Renew by itself")
	assert.False(t, eval[bool](b, `document.head.innerHTML.includes("http-equiv")`))
	b.quiet()
}

// contrasts returns the texts whose colour is too near to that of what is behind them:
// less than 4.5 to 1, the AA of WCAG.
const contrasts = `(() => {
	const rgb = c => c.match(/[\d.]+/g).map(Number);
	const light = c => { const [r, g, b] = c.map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
	const bad = [];
	for (const e of document.body.querySelectorAll("*")) {
		if (!e.checkVisibility() || e.closest("script, svg") || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
		const [a, b] = [light(rgb(getComputedStyle(e).color).slice(0, 3)), light(behind(e))].sort((x, y) => y - x);
		if ((a + 0.05) / (b + 0.05) < 4.5) bad.push(e.tagName + " " + e.textContent.slice(0, 40) + " " + ((a + 0.05) / (b + 0.05)).toFixed(1));
	}
	return bad;
})()`

func TestThePageFitsEveryWidthLightAndDark(t *testing.T) {
	s := open(t)
	fill(t, s, "mail", "")
	fill(t, s, "a-queue-with-"+strings.Repeat("a-long-name-", 15), strings.Repeat("x", 200))
	fill(t, s, "q"+hostile, hostile)
	b := browse(t, s, page.AllowActions())
	backs := map[string]bool{}
	fits := func(at, scheme string, width int64) {
		t.Helper()
		b.size(width, 800, scheme)
		assert.Equal(t, width, eval[int64](b, "innerWidth"))
		assert.LessOrEqual(t, eval[int64](b, "document.documentElement.scrollWidth"), width, "%s at %d", at, width)
		assert.Empty(t, eval[[]string](b, `[...document.querySelectorAll("main *, header *")].filter(e => e.checkVisibility() && !e.closest(".quiet, thead, pre, svg") && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80))`), "%s at %d", at, width)
		assert.Empty(t, eval[[]string](b, contrasts), "%s, %s at %d", at, scheme, width)
		backs[eval[string](b, "getComputedStyle(document.body).backgroundColor")] = true
	}
	of := "queue=" + url.QueryEscape("q"+hostile)
	for at, widths := range map[string][]int64{
		"/":                              {320, 390, 768, 1151, 1280, 1920},
		"/list?state=dead&" + of:         {320, 1280},
		"/list?state=running&queue=mail": {320, 1280},
		"/task?id=" + url.QueryEscape("dead0"+hostile):             {320, 1280},
		"/kind?type=" + url.QueryEscape("type"+hostile) + "&" + of: {320, 1280},
	} {
		b.open(at)
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range widths {
				fits(at, scheme, width)
			}
		}
	}
	assert.Len(t, backs, 2)
	b.quiet()
}
