package book

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
)

func TestAHintGoesToEachProcessThatFits(t *testing.T) {
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 1))
		res := &Resource{Kind: locks.Kind(1 + r.IntN(3)), Size: 1, Shut: int64(r.IntN(2) * r.IntN(200))}
		if res.Kind == locks.Semaphore {
			res.Size = 1 + r.IntN(5)
		}
		for i := range r.IntN(8) {
			e := Entry{
				ID: fmt.Sprint(i), Client: fmt.Sprint(r.IntN(4)), Ticket: int64(i + 1), Permits: 1, Expires: 1000,
				Held: r.IntN(4) == 0, Barging: r.IntN(4) == 0, Shared: res.Kind == locks.ReadWrite && r.IntN(2) == 0,
			}
			if res.Kind == locks.Semaphore {
				e.Permits = 1 + r.IntN(res.Size)
			}
			res.Entries = append(res.Entries, e)
		}
		const now = 100
		want := map[string]bool{}
		for i := range res.Entries {
			if e := &res.Entries[i]; !e.Held && res.fits(now, e) {
				want[e.Client] = true
			}
		}
		got := map[string]bool{}
		for _, c := range res.Wake(now) {
			require.False(t, got[c], "twice")
			got[c] = true
		}
		require.Equal(t, want, got, "seed %d: %v", seed, res.Entries)
	}
}
