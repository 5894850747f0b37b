package picture

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sample is a picture with something of everything.
func sample() *Tree {
	return &Tree{
		At: time.Date(2026, 11, 23, 2, 41, 7, 218e6, time.UTC), Took: 212 * time.Microsecond,
		Process: "orders-api", PID: 4711, Goroutines: 1311, Live: 10_012, Root: 1,
		Rings: []Ring{{
			Size:    3,
			Waits:   []RingWait{{By: ID{4, 1}, How: WayAwait, On: ID{6, 1}}, {By: ID{6, 1}, How: WayPart, On: ID{4, 1}, Part: 1}},
			HoldsUp: []ID{{3, 88}, {1, 1}}, MoreUp: 2,
		}, {
			Size: 1, Waits: []RingWait{{By: ID{9, 9}, How: WayLimit, On: ID{9, 9}}}, Breaks: 90 * time.Second,
		}},
		Problems: []Problem{
			{ProblemStraggler, ID{5, 7}, "crawl.fetch  crawl/fetch.go:88\n"},
			{ProblemFull, ID{3, 91}, ""},
			{ProblemRestarts, ID{1, 2}, ""},
			{ProblemUnclaimed, ID{3, 88}, ""},
		},
		Nodes: []Node{
			{ID: ID{1, 1}, Scope: 2, Kind: KindScope, Name: "main", State: StateJoining, Waits: []Wait{{How: WayJoin}}, Live: 1, Started: 1},
			{ID: ID{2, 1}, Scope: 3, Kind: KindGo, Name: "http", Place: "app/main.go:31", State: StateRunning, Live: 3, Started: 91},
			{ID: ID{3, 88}, Scope: 4, Kind: KindScope, Name: "GET /orders", State: StateRunning, Live: 1, Started: 1, Unclaimed: 1,
				Waits: []Wait{{How: WayAwait, On: ID{4, 1}, Name: "charge", Left: 1200 * time.Millisecond}, {How: WaySleep, Left: time.Second}}},
			{ID: ID{4, 1}, Scope: 6, Kind: KindFuture, Name: "charge", Place: "orders/charge.go:23", State: StateRunning, Waiters: 1, Sought: true,
				Waits: []Wait{{How: WayAwait, On: ID{6, 1}, Name: "post-entry"}}, Live: 1, Started: 1},
			{ID: ID{6, 1}, Kind: KindFuture, Name: "post-entry", State: StateQueued, Sought: true, Waits: []Wait{{How: WayPart, Part: 1}}},
			{ID: ID{3, 91}, Scope: 5, Kind: KindScope, Name: "crawl", State: StateJoining, Live: 5, Started: 9,
				Limit: &Limit{Slots: 1, Held: 1, Queued: 3, Holders: []ID{{5, 7}}}},
			{ID: ID{5, 7}, Kind: KindGo, Name: "fetch-7", Place: "crawl/fetch.go:61", State: StateRunning,
				Told: &Told{Type: "*async.TimeoutError", Cause: "crawl/fetch: timeout of 30s"}},
			{ID: ID{5, 8}, Kind: KindGo, Name: "fetch-8", State: StateQueued, Waits: []Wait{{How: WayLimit}}},
			{ID: ID{5, 9}, Kind: KindGo, Name: "fetch-9", State: StateQueued, Waits: []Wait{{How: WayLimit}}},
			{ID: ID{5, 10}, Kind: KindGo, Name: "fetch-10", State: StateQueued, Waits: []Wait{{How: WayLimit}}},
			{ID: ID{5, 11}, Kind: KindFuture, Name: "of \x1b[1m gone", State: StateRunning, Waits: []Wait{{How: WayAwait, Gone: true, Name: "gone"}}},
			{ID: ID{1, 2}, Kind: KindDetached, Name: "flush-metrics", State: StatePausing, Daemon: true,
				Waits: []Wait{{How: WaySleep, Left: 12 * time.Second}}, Restart: &Restart{Failures: 3, Last: "*net.OpError", Text: "refused"}},
		},
		Parts:  []Part{{Scope: 2, Kind: "worker", Name: "ledger", Places: 1, Active: 1, Queued: 1, Runs: []ID{{4, 1}}}},
		Groups: []Group{{Owner: ID{2, 1}, Name: "fetch[#]", Kind: KindGo, State: StateRunning, Count: 9998}},
		Cut:    Cut{Grouped: 9998, Unreached: 3},
	}
}

// golden compares text with the file testdata/name, which UPDATE=1 writes.
func golden(t *testing.T, name, text string) {
	file := filepath.Join("testdata", name)
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), text)
}

func textOf(t *testing.T, pic *Tree, width int) string {
	var b strings.Builder
	require.NoError(t, pic.WriteText(&b, width))
	return b.String()
}

func TestTheText(t *testing.T) { golden(t, "tree.txt", textOf(t, sample(), 0)) }

func TestTheJSON(t *testing.T) {
	data, err := json.MarshalIndent(sample(), "", " ")
	require.NoError(t, err)
	golden(t, "tree.json", string(data)+"\n")
	var read map[string]any
	require.NoError(t, json.Unmarshal(data, &read))
	require.Equal(t, Schema, read["schema"])
	node := read["nodes"].([]any)[2].(map[string]any)
	require.IsType(t, "", node["id"])
	require.IsType(t, 1.0, node["owner"], "numbers are numbers")
	require.Equal(t, 1200.0, node["waits"].([]any)[0].(map[string]any)["left_ms"])
	require.NotContains(t, node, "told", "what is not so is left out")
}

func TestTheTextIsBounded(t *testing.T) {
	pic := &Tree{Root: 1}
	for i := range int64(10_000) {
		letters := strings.Map(func(digit rune) rune { return 'a' + digit - '0' }, fmt.Sprint(i)) // no two are alike
		pic.Nodes = append(pic.Nodes, Node{ID: ID{1, i + 1}, Kind: KindGo, Name: letters + strings.Repeat("é", 500), State: StateRunning})
	}
	text := textOf(t, pic, 60)
	require.LessOrEqual(t, strings.Count(text, "\n"), MaxLines)
	require.True(t, strings.HasSuffix(text, "\nand 9,602 more lines\n"), text[len(text)-100:])
	for line := range strings.Lines(text) {
		require.LessOrEqual(t, len([]rune(line)), 61)
	}
}

// Ten thousand levels: each node is in the scope of the one before.
func TestADeepTextIsNotWide(t *testing.T) {
	pic := &Tree{Root: 1}
	for i := range int64(10_000) {
		pic.Nodes = append(pic.Nodes, Node{ID: ID{i + 1, 1}, Scope: i + 2, Kind: KindGo, Name: "level", State: StateRunning})
	}
	text := textOf(t, pic, 0)
	require.LessOrEqual(t, strings.Count(text, "\n"), MaxLines)
	for line := range strings.Lines(text) {
		require.Less(t, len([]rune(line)), 200)
	}
}

func TestAlike(t *testing.T) {
	for name, want := range map[string]string{
		"": "", "fetch": "fetch", "fetch 12": "fetch #", "1x22y": "#x#y", "é9": "é#",
		"job 7f3a": "job #", "a1b2c3d4-0f0e-11ee-be56-0242ac120002": "#-#-#-#-#", "deadbeef face": "deadbeef face",
		"mail 06DJ8N3KQ4T2V5LMPGC9R0BHFS": "mail #", "id 2KxQ7aZpL09wRtYuIoPsDfGhJkZ": "id #",
		"handleOAuth2CallbackOfProvider": "handleOAuth#CallbackOfProvider", "main.run.func1": "main.run.func#",
	} {
		require.Equal(t, want, Alike(name))
	}
}

func TestAnID(t *testing.T) {
	require.Equal(t, "4.2", ID{4, 2}.String())
	require.Equal(t, "4.2", fmt.Sprint(ID{4, 2}))
	require.True(t, ID{}.IsZero())
	require.False(t, ID{0, 1}.IsZero())
}

type failing struct{}

var errWrite = errors.New("write")

func (failing) Write([]byte) (int, error) { return 0, errWrite }

func TestTheErrorOfTheWriterIsReturned(t *testing.T) {
	require.ErrorIs(t, sample().WriteText(failing{}, 0), errWrite)
}

// An ID is read as it is written, and nothing else is.
func TestIDsAreRead(t *testing.T) {
	for _, id := range []ID{{}, {Scope: 4, Ordinal: 2}, {Scope: 1 << 60, Ordinal: 1 << 62}} {
		text, err := id.MarshalText()
		require.NoError(t, err)
		var read ID
		require.NoError(t, read.UnmarshalText(text))
		require.Equal(t, id, read)
	}
	for _, text := range []string{"", "4", "4.", ".2", "4.2.1", "a.b", "4 .2", "99999999999999999999.1"} {
		var read ID
		require.Error(t, read.UnmarshalText([]byte(text)), text)
		require.Zero(t, read)
	}
}
