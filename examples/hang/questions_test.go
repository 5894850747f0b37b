//go:build unix

package main

import (
	"os"
	"path/filepath"
	"testing"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// questions are those of a person on call: where the page answers each, and what it says there.
var questions = []struct {
	name, ask string
	at        string // the address
	in        string // the element that has the answer
	answers   []string
	picture   string // "": of that element
}{
	{"hangs", "Which tasks hang?", "", "section[data-part=problems]", []string{
		`(?i)✗ ring #\S+ charge joins`, `(?i)! straggler #\S+ fetch was told to stop`, `seen for \d+s`, `holds up #\S+`}, ""},
	{"slot", "Who holds the last slot of the limit?", "?problem=full", ".problems .full", []string{
		`(?i)full limit 1 of #\S+ uploads: 3 queued`, `held by #\S+ upload 1 \(running, \d+s old\)`}, ""},
	{"cycle", "Which cycle of waits?", "?problem=ring", ".problems .ring", []string{
		`#\S+ charge joins → #\S+ \w+.balance waits in worker ledger, which runs → #\S+ \w+.checkout.func2 awaits → #\S+ charge`,
		`no limit that is known ends it`, `holds up .*#\S+ checkout`}, ""},
	{"forgotten", "What was never awaited?", "?name=office&open=all", "main", []string{
		`office has futures that have failed: 1, which nobody has asked for`}, ".problems .unclaimed"},
	{"nobody", "Which future has nobody who waits?", "?name=yearly", "[data-part=tree]", []string{`yearly report #\S+ future running \d+s nobody waits`}, ""},
	{"deaf", "What ignores that it was told to stop, and where is it?", "?problem=straggler&stacks=1", ".problems .straggler", []string{
		`(?i)straggler #\S+ fetch was told to stop: \*async.TimeoutError: .*limit 2s`, `crawl.func1\s+hang/shop.go:\d+`}, ""},
	{"request", "What did this request start?", "?name=GET+/orders/7", "[data-part=tree]", []string{`GET /orders/7 #\S+ go running \d+s`}, ""},
	{"longest", "What has run the longest?", "?span=all", ".timeline", []string{`checkout #\S+ ▸ \d\S+ waits`, `crawl #\S+ ▸ \d\S+ waits`, `yearly report #\S+ ▸ \d\S+ running`}, ""},
	{"restarts", "What is started again, how often, and why?", "?problem=restarts", ".problems .restarts", []string{
		`(?i)restarts #\S+ send mail is started again: \d+ failures, the last \*errors.errorString: no route to mail.example`}, ""},
	{"queue", "What waits in a worker or a queue?", "?state=waiting", "main", []string{
		`thumbnails 1 .* for a job of queue ≥\d+s`, `worker ledger #\S+ checkout 1 of 1 1 #\S+ \w+.checkout.func2`}, "section[data-part=parts]"},
	{"minute", "What changed in the last minute?", "", "section[data-part=minute]", []string{`quote # \d+ ✗ \d+ \d+ \S+ \S+`}, ""},
}

// Each question has its answer on the page of a program that hangs. With PICTURES set, each answer becomes a picture of the docs.
func TestTheBrowserAnswersTenQuestions(t *testing.T) {
	name := chromium(t)
	_, url, _ := startOf(t, "ten")
	b := browseAt(t, name, url)
	b.size(1280, 900, "light")
	b.open("")
	b.until("/seen for [2-9]/.test(document.body.innerText) && /quote # [0-9]+ ✗/.test(document.body.innerText.replace(/\\s+/g, ' '))")
	for _, q := range questions {
		b.open(q.at)
		b.until("document.querySelector('" + q.in + "') !== null")
		if q.name == "request" {
			row := rowOf("GET /orders/7")
			id := eval[string](b, row+".dataset.key")
			b.open("?under=" + id)
			for _, child := range []string{"load customer", "load items"} {
				assert.Contains(t, b.text(), child, q.ask)
			}
			assert.Contains(t, b.text(), "Only #"+id+" and what is in it. 3 of", q.ask)
		}
		text := eval[string](b, "document.querySelector('"+q.in+"').innerText.replace(/\\s+/g, ' ')")
		for _, answer := range q.answers {
			assert.Regexp(t, answer, text, q.ask)
		}
		if q.picture == "" {
			q.picture = q.in
		}
		b.picture("ask-"+q.name, q.picture)
	}
	b.quiet()
}

// The time line is there in a narrow window, in both schemes, and scrolls only downwards; a row opens to what is known.
func TestTheBrowserShowsTheTimeLine(t *testing.T) {
	name := chromium(t)
	_, url, _ := startOf(t, "ten")
	b := browseAt(t, name, url)
	for _, at := range []struct {
		name   string
		width  int64
		scheme string
	}{{"timeline", 1280, "light"}, {"timeline-dark", 1280, "dark"}, {"timeline-phone", 390, "light"}, {"timeline-phone-dark", 390, "dark"}} {
		b.size(at.width, 900, at.scheme)
		b.open("?span=10s&still=1")
		b.until("document.querySelectorAll('.timeline .line rect').length > 5")
		assert.LessOrEqual(t, eval[int64](b, "document.documentElement.scrollWidth"), at.width)
		assert.True(t, eval[bool](b, "[...document.querySelectorAll('.timeline .line .bars')].every(e => e.getBoundingClientRect().width > 100)"))
		const last = "[...document.querySelectorAll('.timeline .line.failed')].at(-1)"
		eval[bool](b, last+".querySelector('summary').click() ?? true")
		assert.Regexp(t, `hang/ten_test.go:\d+; .*began .* ago; .*ended .* ago: error`, eval[string](b, last+".innerText.replace(/\\s+/g, ' ')"))
		b.picture(at.name, "section[aria-labelledby=timeline]")
	}
	b.quiet()
}

// A page that was saved opens from the file, and plays its recording.
func TestTheBrowserPlaysASavedPage(t *testing.T) {
	name := chromium(t)
	_, _, ask := startOf(t, "ten")
	file := filepath.Join(t.TempDir(), "saved.html")
	require.NoError(t, os.WriteFile(file, []byte(ask("?format=saved", "text/html")), 0o600))
	b := browseAt(t, name, "file://"+file)
	b.size(1280, 900, "light")
	b.open("")
	b.until("document.getElementById('player').hidden === false")
	assert.Regexp(t, `\d+ recorded tasks were under way: .*checkout`, eval[string](b, "document.getElementById('then').textContent"))
	assert.True(t, eval[bool](b, "document.querySelectorAll('.line.ahead').length === 0"))
	eval[bool](b, "(e => { e.value = 0; e.dispatchEvent(new Event('input')) })(document.getElementById('moment')) ?? true")
	assert.True(t, eval[bool](b, "document.querySelectorAll('.line.ahead').length > 5"), "they began later")
	eval[bool](b, "(e => { e.value = 700; e.dispatchEvent(new Event('input')) })(document.getElementById('moment')) ?? true")
	b.picture("timeline-played", "section[aria-labelledby=timeline]")
	eval[bool](b, "(document.getElementById('moment').value = 0) === 0")
	eval[bool](b, "document.getElementById('play').click() ?? true")
	b.until("Number(document.getElementById('moment').value) > 20")
	b.quiet()
}

// picture makes a picture of what is around an element, if PICTURES says where pictures go.
func (b *tab) picture(name, element string) {
	b.Helper()
	dir := os.Getenv("PICTURES")
	if dir == "" {
		return
	}
	eval[bool](b, "(document.querySelector('"+element+"').scrollIntoView({block: 'center'}), true)")
	box := eval[[]float64](b, "(r => [r.x, r.y + scrollY, r.width, Math.min(r.height, 620)])(document.querySelector('"+element+"').getBoundingClientRect())")
	clip := &cdppage.Viewport{X: max(box[0]-16, 0), Y: max(box[1]-16, 0), Width: box[2] + 32, Height: box[3] + 32, Scale: 1}
	shot := call(b, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{Format: "webp", Quality: new(int64(80)), Clip: clip, CaptureBeyondViewport: new(true)})
	require.NoError(b, os.WriteFile(filepath.Join(dir, name+".webp"), shot.Data, 0o644))
}
