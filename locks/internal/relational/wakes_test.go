package relational

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
)

func entry(client string, ticket int64) book.Entry {
	return book.Entry{ID: fmt.Sprint("id-", ticket), Client: client, Permits: 1, Ticket: ticket, Expires: 1 << 50}
}

// after returns what a step has told, and the row that it has left. The lock is free, and
// clients wait for it.
func after(was *Row, size int, clients ...string) ([]string, *Row) {
	var entries []book.Entry
	for i, c := range clients {
		entries = append(entries, entry(c, int64(i+1)))
	}
	if was == nil {
		was = &Row{Resource: book.Resource{Exists: true, Kind: locks.Semaphore, Size: size}}
	}
	l := Load(locks.Name{}, was, entries, 0)
	wakes, told := l.wakes(l.Wake(1))
	next := *was
	next.Wakes = wakes
	return told, &next
}

func TestWhoseTurnItIsIsToldOnce(t *testing.T) {
	told, row := after(nil, 1, "a", "b")
	require.Equal(t, []string{"a"}, told)
	require.True(t, Marked(row.Wakes, Mark("a")))
	before := row.Wakes
	told, row = after(row, 1, "a", "b", "c") // another comes
	require.Empty(t, told)
	require.Equal(t, before, row.Wakes, "nobody has to look again")

	told, row = after(row, 1, "b", "c") // a has given up
	require.Equal(t, []string{"b"}, told)
	require.NotEqual(t, before, row.Wakes)

	told, row = after(row, 1)
	require.Empty(t, told)
	require.False(t, Marked(row.Wakes, Mark("b")), "what is over is nobody's turn")
	told, row = after(row, 1, "b")
	require.Equal(t, []string{"b"}, told, "again")
	require.NotEqual(t, before, row.Wakes)

	told, _ = after(row, 2, "b")
	require.Empty(t, told)
}

// TestWhatTheLastStepCouldNotTellIsTold: a lease has expired, so the next step finds that it is
// somebody's turn, who was not told when the lease was there.
func TestWhatTheLastStepCouldNotTellIsTold(t *testing.T) {
	row := &Row{Resource: book.Resource{Exists: true, Kind: locks.Mutex, Size: 1, Ticket: 2}}
	row.Holder = book.Entry{ID: "holder", Ticket: 1, Expires: 10, Held: true}
	l := Load(locks.Name{}, row, []book.Entry{entry("a", 2)}, 0)
	l.Acquire(20, "b", []locks.Request{{ID: "late", Kind: locks.Mutex, Lease: 1000, Wait: true}})
	require.Equal(t, []string{"a"}, l.Change(20).Wake)
}

func TestEverybodyWhoseTurnItIsIsMarked(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	wrong, looks := 0, 0
	var row *Row
	for range 2000 {
		var clients []string
		for range 1 + r.IntN(3) {
			clients = append(clients, fmt.Sprint("process ", r.IntN(64)))
		}
		_, row = after(row, 8, clients...)
		require.Positive(t, row.Wakes)
		mine := map[string]bool{}
		for _, c := range clients {
			mine[c] = true
			require.True(t, Marked(row.Wakes, Mark(c)))
		}
		for i := range 64 {
			if c := fmt.Sprint("process ", i); !mine[c] {
				if looks++; Marked(row.Wakes, Mark(c)) {
					wrong++
				}
			}
		}
		row.Size = 8
	}
	require.Less(t, wrong, looks/50, "few of the others look in vain")
}

func TestTheCountOfWakesStaysANumber(t *testing.T) {
	row := &Row{Resource: book.Resource{Exists: true, Kind: locks.Mutex, Size: 1}, Wakes: (1<<62 - 1) &^ (1<<markBits - 1)}
	told, row := after(row, 1, "a")
	require.Equal(t, []string{"a"}, told)
	require.Equal(t, Mark("a"), row.Wakes)
}
