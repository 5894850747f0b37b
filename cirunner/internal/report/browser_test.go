//go:build unix

package report

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A tab is a report in a real browser that runs no scripts.
type tab struct {
	*testing.T
	ctx context.Context

	mu       sync.Mutex
	troubles []string // what the browser complains of
	asked    []string // what it has loaded
}

// browse opens a report, without scripts.
func browse(t *testing.T, p Page) *tab {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	require.NoError(t, WriteHTML(path, p))
	b := &tab{T: t}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true))
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, opts...)
	t.Cleanup(cancel)
	b.ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Listen(b.ctx, b.hear))
	call(b, log.Enable, cdp.Empty{})
	call(b, network.Enable, network.EnableParams{})
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	require.NoError(t, chromedp.Do(b.ctx, chromedp.Navigate("file://"+path)))
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
	case *log.EventEntryAdded:
		b.troubles = append(b.troubles, string(e.Entry.Source)+": "+e.Entry.Text)
	case *network.EventRequestWillBeSent:
		b.asked = append(b.asked, e.Request.URL)
	}
}

// call sends a command of the browser's protocol.
func call[P, R any](b *tab, what cdp.Command[P, R], p P) R {
	b.Helper()
	answer, err := chromedp.Run(b.ctx, func(ctx context.Context, t *chromedp.Target) (R, error) { return cdp.Call(ctx, t, what, p) })
	require.NoError(b, err)
	return answer
}

// eval returns what an expression is in the page: the test may run scripts.
func eval[T any](b *tab, expression string) T {
	b.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	require.NoError(b, err)
	return v
}

func (b *tab) size(width int64, scheme string) {
	b.Helper()
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 800, DeviceScaleFactor: 1})
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

func TestAReportInABrowser(t *testing.T) {
	b := browse(t, page(t))

	// The job that failed is unfolded, its log is there as it was written.
	assert.Equal(t, []bool{false, true, false, false}, eval[[]bool](b, `[...document.querySelectorAll("details")].map(d => d.open)`))
	assert.Equal(t, evil+"\nthe reason\n", eval[string](b, `document.querySelector("#job-2 pre").textContent`))
	assert.Equal(t, 0, eval[int](b, `document.querySelectorAll("script, img, iframe").length`))
	assert.NotEqual(t, "taken", eval[string](b, `document.title`))

	// Another log comes with a click, without any script.
	assert.False(t, eval[bool](b, `document.querySelector("#job-1 pre").checkVisibility()`))
	require.NoError(t, chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS("#job-1 summary"))))
	assert.True(t, eval[bool](b, `document.querySelector("#job-1 pre").checkVisibility()`))
	assert.Equal(t, "green\nlast\n", eval[string](b, `document.querySelector("#job-1 pre").textContent`))

	// The link at the top leads to the job.
	require.NoError(t, chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS("nav a"))))
	assert.Equal(t, "#job-2", eval[string](b, `location.hash`))

	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Empty(t, b.troubles)
	for _, url := range b.asked {
		assert.Regexp(t, `^(file:///.*/report\.html(#.*)?|data:,)$`, url)
	}
}

// On a desk and on a phone, in the light and in the dark: the bars are where their
// times are, nothing is wider than the window, and what is written can be read.
func TestTheTimelineInABrowser(t *testing.T) {
	b := browse(t, page(t))
	backs := map[string]string{}
	for _, width := range []int64{390, 1280} {
		for _, scheme := range []string{"light", "dark"} {
			b.size(width, scheme)
			assert.LessOrEqual(t, eval[int](b, `document.documentElement.scrollWidth`), int(width), "%d %s", width, scheme)
			const where = `[...document.querySelectorAll("#job-%d .bar")].flatMap(b => {
				const t = b.parentElement.getBoundingClientRect(), r = b.getBoundingClientRect();
				return [100 * (r.left - t.left) / t.width, 100 * (r.right - t.left) / t.width];
			})`
			assert.InDeltaSlice(t, []float64{0, 20}, eval[[]float64](b, fmt.Sprintf(where, 1)), 1)
			assert.InDeltaSlice(t, []float64{20, 60}, eval[[]float64](b, fmt.Sprintf(where, 2)), 1)
			assert.InDeltaSlice(t, []float64{20, 30, 60, 70, 70, 95, 95, 100}, eval[[]float64](b, fmt.Sprintf(where, 3)), 1)
			backs[scheme] = eval[string](b, `getComputedStyle(document.body).backgroundColor`)
			for _, what := range []string{"body", ".took", ".state", ".reason", ".facts dt", "nav li", "nav a", "#job-2 .why", "#job-2 .state", "#job-1 .mark", ".tiles .failed dd"} {
				ratio := eval[float64](b, contrast+`("`+what+`")`)
				assert.GreaterOrEqual(t, ratio, 4.5, "%s %s", what, scheme)
			}
		}
	}
	assert.NotEqual(t, backs["light"], backs["dark"])
}

// contrast is the ratio of WCAG between a text and what it stands on.
const contrast = `(what => {
	const light = css => {
		const c = css.match(/[\d.]+/g).slice(0, 3).map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
		return .2126 * c[0] + .7152 * c[1] + .0722 * c[2];
	};
	const behind = e => { // the colour that it stands on
		const c = getComputedStyle(e).backgroundColor;
		return c == "rgba(0, 0, 0, 0)" && e.parentElement ? behind(e.parentElement) : c;
	};
	const a = light(getComputedStyle(document.querySelector(what)).color), b = light(behind(document.querySelector(what)));
	return (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
})`

// The text that a screen reader is told.
func TestAReportForThoseWhoDoNotSeeIt(t *testing.T) {
	b := browse(t, page(t))
	names := map[string][]string{}
	for _, n := range call(b, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
		if n.Ignored || n.Role == nil || n.Name == nil {
			continue
		}
		names[string(n.Role.Value)] = append(names[string(n.Role.Value)], string(n.Name.Value))
	}
	assert.Equal(t, []string{`"ci.yml"`, `"Failed"`, `"build"`, `"test"`, `"empty"`}, names[`"heading"`])
	for k, want := range []string{"compile success 20s", evil + " failed 40s", "flaky success 40s", "skipped skipped needs something"} {
		var name string
		require.NoError(t, json.Unmarshal([]byte(names[`"DisclosureTriangle"`][k]), &name))
		assert.Equal(t, want, strings.TrimSpace(name), "the state is said, and not only drawn")
	}
	assert.Equal(t, "en", eval[string](b, "document.documentElement.lang"))
}
