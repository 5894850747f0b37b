package pagetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/page"
)

// The text that a screen reader is told: at the width of a phone, too, where a table is shown as
// cards.
func TestThePageForThoseWhoDoNotSeeIt(t *testing.T) {
	s := open(t)
	fill(t, s, "mail", "")
	b := browse(t, s, page.AllowActions())
	for _, width := range []int64{390, 1280} {
		b.size(width, 800, "light")
		b.open("/")
		names := map[string][]string{}
		for _, n := range call(b, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
			if n.Ignored || n.Role == nil {
				continue
			}
			name := ""
			if n.Name != nil {
				name = string(n.Name.Value)
			}
			names[string(n.Role.Value)] = append(names[string(n.Role.Value)], name)
		}
		assert.Len(t, names[`"table"`], 5, "at %d: %v", width, names)
		assert.NotContains(t, names[`"table"`], `""`, "each has a name")
		assert.NotEmpty(t, names[`"columnheader"`], "at %d", width)
		assert.NotEmpty(t, names[`"rowheader"`], "at %d", width)
		assert.Subset(t, names[`"heading"`], []string{`"taskq"`, `"Failures"`, `"Kinds"`, `"Queues"`, `"Workers"`, `"Waited for by others"`, `"Limits by key and kind"`, `"Schedules"`})
		assert.Contains(t, names[`"button"`], `"Pause updates"`)
		assert.Contains(t, names[`"status"`], `""`, "what changes by itself says so")
		for _, role := range []string{`"link"`, `"searchbox"`, `"button"`} {
			assert.NotContains(t, names[role], `""`, "each has a name")
		}
		assert.Contains(t, names[`"button"`], `"Retry all dead letters of type with the error dead because of "`, "what it is done to is said, where it cannot be seen")
	}
	require.Equal(t, "en", eval[string](b, "document.documentElement.lang"))
	assert.Equal(t, []int{1, 2, 2, 2, 2, 2, 2, 2, 2}, eval[[]int](b, `[...document.querySelectorAll("h1, h2, h3")].map(h => +h.tagName[1])`))
}

// An error that is long takes no room from words that are short.
func TestNoShortWordIsBrokenBesideALongError(t *testing.T) {
	s := open(t)
	root, err := taskqueue.New(s)
	require.NoError(t, err)
	for i := range 6 {
		_, err := root.Enqueue(ctx, taskqueue.Task{ID: fmt.Sprint("inv-204", i), Type: "invoice"})
		require.NoError(t, err)
	}
	require.NoError(t, root.Work(ctx, taskqueue.Handlers{"invoice": func(context.Context, *taskqueue.Claim) error {
		return taskqueue.Dead(errors.New(strings.Repeat("POST billing: 503 Service Unavailable: upstream connect error or disconnect before headers ", 4)))
	}}, taskqueue.WorkUntilEmpty()))
	b := browse(t, s, page.AllowActions())
	b.size(1280, 800, "light")
	for _, at := range []string{"/", "/list?queue=default&state=dead"} {
		b.open(at)
		assert.Empty(t, eval[[]string](b, `[...document.querySelectorAll("td[data-label=Kind] bdi, td[data-label=Queue] bdi")].filter(e => e.getClientRects().length > 1).map(e => e.innerText)`), at)
		assert.Empty(t, eval[[]string](b, `[...document.querySelectorAll("td.do button, td.do summary")].filter(e => e.offsetHeight > 35).map(e => e.innerText)`), at)
	}
}
