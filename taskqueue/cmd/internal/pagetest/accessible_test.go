package pagetest

import (
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
		assert.Contains(t, names[`"button"`], `"Retry all dead letters of type"`, "what it is done to is said, where it cannot be seen")
	}
	require.Equal(t, "en", eval[string](b, "document.documentElement.lang"))
	assert.Equal(t, []int{1, 2, 2, 2, 2, 2, 2, 2, 2}, eval[[]int](b, `[...document.querySelectorAll("h1, h2, h3")].map(h => +h.tagName[1])`))
}
