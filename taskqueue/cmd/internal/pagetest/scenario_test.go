package pagetest

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/page"
)

// A worker whose handlers can be mended runs tasks of three kinds, one of which fails.
func failing(t *testing.T) (s *store, mend func()) {
	s = open(t)
	q, err := taskqueue.New(s)
	require.NoError(t, err)
	var mended atomic.Bool
	ok := func(context.Context, *taskqueue.Claim) error { return nil }
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- q.Work(ctx, taskqueue.Handlers{"mail": ok, "resize": ok, "invoice": func(_ context.Context, c *taskqueue.Claim) error {
			if mended.Load() {
				return nil
			}
			return taskqueue.Dead(fmt.Errorf("rate of %s is missing", c.Payload))
		}})
	}()
	t.Cleanup(func() { stop(); assert.NoError(t, <-ended) })
	for i := range 30 {
		task := taskqueue.Task{ID: fmt.Sprint("id", i), Type: []string{"mail", "resize", "invoice"}[i%3], Payload: []byte("CHF"), Retention: time.Hour}
		_, err := q.Enqueue(ctx, task)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		st, err := q.Stats(ctx)
		return err == nil && st.States[taskqueue.StateDead] == 10 && st.States[taskqueue.StateDone] == 20
	}, patience/2, 10*time.Millisecond)
	return s, func() { mended.Store(true) }
}

// A kind that fails is found, understood and retried: with three clicks.
func TestAFailedKindIsFoundUnderstoodAndRetried(t *testing.T) {
	s, mend := failing(t)
	b := browse(t, s, page.AllowActions())
	b.open("/")
	first := `document.querySelector("main section:not([aria-labelledby=h-total]) tbody tr")`
	assert.Equal(t, "invoice", eval[string](b, first+`.querySelector("th").innerText`), "it is the first thing on the page")
	assert.Contains(t, eval[string](b, first+`.innerText`), "rate of CHF is missing")
	assert.Equal(t, "10", eval[string](b, first+`.querySelector("td.bad").innerText`))
	b.click(`[data-part="failures"] td small a`) // a task of it
	b.until(`document.querySelector("h2")?.innerText.startsWith("Task")`)
	text := b.text()
	for _, want := range []string{"dead", "invoice", "rate of CHF is missing", "run 1 began on worker", "CHF", "3 bytes"} {
		assert.Contains(t, text, want)
	}
	b.click("h1 a")
	b.until(`document.querySelector("#h-failures") !== null`)
	mend()
	b.click(`[data-part="failures"] button[value=retry]`)
	b.until(`document.querySelector(".did")?.innerText === "10 tasks were retried."`)
	b.until(`document.querySelector('[data-part="failures"]').innerText.includes("Nothing has failed.")`)
	b.until(`document.querySelector('[data-part="total"]').innerText.includes("Dead letters\n0")`)
	for i := 2; i < 30; i += 3 {
		require.Eventually(t, func() bool { return state(t, s, "default", fmt.Sprint("id", i)) == "done" }, patience/2, 10*time.Millisecond)
	}
	b.quiet()
}

func TestThePageActsWithoutJavaScriptAndAsksBeforeItDeletes(t *testing.T) {
	s, _ := failing(t)
	b := browse(t, s, page.AllowActions())
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.open("/?still")
	b.click(`[data-part="failures"] td.bad a`)
	b.until(`document.querySelector("[aria-current]")?.innerText === "dead 10"`)
	assert.Equal(t, 10, eval[int](b, `document.querySelectorAll("tbody tr").length`), "those of the group")
	assert.False(t, eval[bool](b, `document.querySelector(".all button[value=delete]").checkVisibility()`), "it asks first")
	b.click(".all details:last-of-type summary")
	b.until(`document.querySelector(".all button[value=delete]").checkVisibility()`)
	b.click(".all button[value=delete]")
	b.until(`document.querySelector(".did")?.innerText === "10 tasks were deleted."`)
	assert.Contains(t, b.text(), "No task that is dead is like that.")
	b.quiet()
}

// press presses a key that has no text, or Enter.
func (b *tab) press(key string) {
	b.Helper()
	p := input.DispatchKeyEventParams{Type: "keyDown", Key: key, Code: key}
	if key == "Enter" {
		p.Text, p.WindowsVirtualKeyCode = "\r", 13
	} else {
		p.WindowsVirtualKeyCode = 9
	}
	call[input.DispatchKeyEventParams, cdp.Empty](b, input.DispatchKeyEvent, p)
	p.Type, p.Text = "keyUp", ""
	call[input.DispatchKeyEventParams, cdp.Empty](b, input.DispatchKeyEvent, p)
}

func TestThePageIsUsedByTheKeyboardAlone(t *testing.T) {
	s, mend := failing(t)
	mend()
	b := browse(t, s, page.AllowActions())
	b.open("/")
	var reached []string
	for range 60 {
		b.press("Tab")
		name := eval[string](b, `document.activeElement.getAttribute("aria-label") || document.activeElement.innerText || ""`)
		reached = append(reached, name)
		if name == "Retry all dead letters of invoice with the error rate of CHF is missing" {
			break
		}
		if name != "" {
			assert.NotEqual(t, "none", eval[string](b, `getComputedStyle(document.activeElement).outlineStyle`), "one sees where one is: %s", name)
		}
	}
	require.Contains(t, reached, "Retry all dead letters of invoice with the error rate of CHF is missing", strings.Join(reached, ", "))
	b.press("Enter")
	b.until(`document.querySelector(".did")?.innerText === "10 tasks were retried."`)
	b.quiet()
}
