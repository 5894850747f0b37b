//go:build unix

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// patience bounds what a test waits for. None of them depends on it.
const patience = 4 * time.Minute

// A tab is the page in a real browser.
type tab struct {
	*testing.T
	ctx context.Context
	url string

	mu       sync.Mutex
	troubles []string // what the browser complains of
}

// browse starts a Chromium, and the program.
func browse(t *testing.T) *tab {
	t.Helper()
	name := chromium(t)
	_, url, _ := start(t)
	return browseAt(t, name, url)
}

// browseAt starts a Chromium, whose path is given, to look at url.
func browseAt(t *testing.T, name, url string) *tab {
	t.Helper()
	b := &tab{T: t, url: url}
	flags := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(name), chromedp.NoSandbox,
		chromedp.Flag("disable-dev-shm-usage", true))
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

func (b *tab) open(at string) {
	b.Helper()
	require.NoError(b, chromedp.Do(b.ctx, chromedp.Navigate(b.url+at)))
}

// eval returns what an expression is in the page.
func eval[T any](b *tab, expression string) T {
	b.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(b, err)
	return v
}

// until waits until an expression is true in the page, and all of that is there: it comes in pieces.
func (b *tab) until(expression string) {
	b.Helper()
	for deadline := time.Now().Add(patience / 2); ; time.Sleep(20 * time.Millisecond) {
		is, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("document.readyState !== 'loading' && ("+expression+")"))
		if err == nil && is {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("it does not become true: %s (%v)\n%s", expression, err, b.text())
		}
	}
}

// renewed waits until the page has renewed itself.
func (b *tab) renewed() {
	b.Helper()
	at := eval[string](b, "document.querySelector('footer time').dateTime")
	b.until("document.querySelector('footer time').dateTime !== '" + at + "'")
}

func (b *tab) size(width, height int64, scheme string) {
	b.Helper()
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600})
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

func (b *tab) text() string {
	b.Helper()
	return eval[string](b, "document.body.innerText.replace(/\\s+/g, ' ')")
}

// rowOf is the expression of the row of a task.
func rowOf(name string) string {
	return "[...document.querySelectorAll('.row')].filter(r => r.querySelector('bdi').textContent === '" + name + "')[0]"
}

// Each fault is found on the page as it is opened, and each link of it leads to a row.
func TestTheBrowserShowsEachFault(t *testing.T) {
	b := browse(t)
	b.size(1280, 900, "light")
	b.open("")
	b.until("document.getElementById('live').textContent === '● Live'")
	text := b.text()
	for _, what := range []string{
		`✗ RING #\S+ charge joins → #\S+ \w+.balance waits in worker ledger, which runs →`,
		`! STRAGGLER #\S+ fetch was told to stop`, `■ FULL limit 1 of #\S+ uploads: 3 queued`, `for a job of queue`,
	} {
		assert.Regexp(t, what, text)
	}
	for _, kind := range []string{"ring", "straggler", "full"} {
		b.open("")
		row := eval[string](b, "document.querySelector('.problems ."+kind+" a').hash")
		eval[bool](b, "document.querySelector('.problems ."+kind+" a').click() ?? true")
		b.until("location.hash === '" + row + "' && document.querySelector(':target') !== null")
		b.until("document.querySelector(':target > .found, :target > details > .found') !== null")
	}
	b.quiet()
}

// Folds and the focus stay when the page renews itself.
func TestRenewalsKeepWhatAPersonDid(t *testing.T) {
	b := browse(t)
	b.open("")
	b.until("document.getElementById('live').textContent === '● Live'")
	eval[bool](b, rowOf("pictures")+".querySelector('summary').click() ?? true")
	eval[bool](b, rowOf("checkout")+".querySelector('summary').focus() ?? true")
	b.renewed()
	b.renewed()
	assert.False(t, eval[bool](b, rowOf("pictures")+".querySelector('details').open"), "it was folded")
	assert.True(t, eval[bool](b, "document.activeElement === "+rowOf("checkout")+".querySelector('summary')"))
	ids := eval[[]string](b, "[...document.querySelectorAll('[id]')].map(e => e.id)")
	seen := make(map[string]bool)
	for _, id := range ids {
		assert.False(t, seen[id], "%s is there twice", id)
		seen[id] = true
	}
	b.quiet()
}

// Without scripts it is the same page, which renews itself whole.
func TestTheBrowserWithoutScripts(t *testing.T) {
	b := browse(t)
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.open("?still=1")
	text := b.text()
	assert.Regexp(t, `✗ RING #\S+ charge joins → #\S+ \w+.balance`, text)
	assert.Contains(t, text, "Renew by itself")
	assert.NotContains(t, text, "Pause updates")
	b.quiet()
}

// A narrow window scrolls only downwards, in both schemes.
func TestTheBrowserInANarrowWindow(t *testing.T) {
	b := browse(t)
	for _, scheme := range []string{"light", "dark"} {
		b.size(390, 800, scheme)
		b.open("")
		assert.LessOrEqual(t, eval[int64](b, "document.documentElement.scrollWidth"), int64(390))
	}
	b.quiet()
}

// The pictures of the docs: PICTURES=../../docs/pictures go test -run TestPictures makes them anew.
func TestPictures(t *testing.T) {
	dir := os.Getenv("PICTURES")
	if dir == "" {
		t.Skip("PICTURES is not set: it says where they go")
	}
	b := browse(t)
	for name, scheme := range map[string]string{"asyncz": "light", "asyncz-dark": "dark"} {
		b.size(1280, 1120, scheme)
		b.open("")
		b.until("document.getElementById('live').textContent === '● Live'")
		shot := call(b, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{Format: "webp", Quality: new(int64(80))})
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".webp"), shot.Data, 0o644))
	}
}
