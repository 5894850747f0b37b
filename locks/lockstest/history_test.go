package lockstest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAHistoryIsCheckedForEachFault(t *testing.T) {
	a := Event{At: 10, Client: "a", Kind: Granted, Key: "k", Token: 1}
	b := Event{At: 20, Client: "b", Kind: Granted, Key: "k", Token: 2}
	by := func(e Event, at time.Duration, kind, text string) Event {
		e.At, e.Kind, e.Text = at, kind, text
		return e
	}
	slot := b
	slot.Slot = 1
	for name, test := range map[string]struct {
		events []Event
		faults int
	}{
		"one after the other":       {[]Event{a, by(a, 15, Acts, ""), by(a, 16, Left, ""), by(a, 17, Returned, ""), b, by(b, 25, Acts, "")}, 0},
		"two believers":             {[]Event{a, b, by(a, 25, Acts, "")}, 1},
		"a ctx that lives too long": {[]Event{a, b, by(a, 21, Lives, "")}, 1},
		"of another slot":           {[]Event{a, slot, by(a, 25, Acts, "")}, 0},
		"a token twice":             {[]Event{a, by(b, 20, Granted, ""), {At: 30, Client: "c", Kind: Granted, Key: "k", Token: 2}}, 1},
		"nil though it was lost":    {[]Event{a, b, by(a, 25, Left, ""), by(a, 26, Returned, "")}, 1},
		"lost, and told":            {[]Event{a, b, by(a, 25, Left, ""), by(a, 26, Returned, "it was lost")}, 0},
		"a release that came late":  {[]Event{a, by(a, 15, Left, ""), b, by(a, 26, Returned, "")}, 0},
	} {
		t.Run(name, func(t *testing.T) { require.Len(t, Check(test.events), test.faults) })
	}
}

func TestAHistoryIsReadInTheOrderOfItsTimesWithoutAHalfLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	events, err := ReadHistory(path)
	require.NoError(t, err)
	require.Empty(t, events)
	for _, client := range []string{"a", "b"} {
		j, err := OpenJournal(path, client)
		require.NoError(t, err)
		j.Write(Event{At: 29, Kind: Ready})
		j.Write(Event{Kind: Left})
		require.NoError(t, j.Close())
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"at":1,"cl`)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	events, err = ReadHistory(path)
	require.NoError(t, err)
	require.Len(t, events, 4)
	require.Equal(t, map[string]int{"a": 1, "b": 1}, Count(events, Ready, 0))
	require.Empty(t, Count(events, Ready, 30))
}

func TestAHistoryThatIsReadAgainHasEachEventOnce(t *testing.T) {
	h := history{path: filepath.Join(t.TempDir(), "history")}
	j, err := OpenJournal(h.path, "a")
	require.NoError(t, err)
	j.Write(Event{At: 30, Kind: Left})
	half := []byte(`{"at":20,"client":"b","kind":"ready"}` + "\n")
	_, err = j.file.Write(half[:9])
	require.NoError(t, err)
	events, err := h.read()
	require.NoError(t, err)
	require.Len(t, events, 1)
	_, err = j.file.Write(half[9:])
	require.NoError(t, err)
	j.Write(Event{At: 10, Kind: Ready})
	require.NoError(t, j.Close())
	for range 2 {
		events, err = h.read()
		require.NoError(t, err)
		require.Equal(t, []Event{{At: 10, Client: "a", Kind: Ready}, {At: 20, Client: "b", Kind: Ready}, {At: 30, Client: "a", Kind: Left}}, events)
	}
}
