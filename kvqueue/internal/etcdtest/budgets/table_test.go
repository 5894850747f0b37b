//go:build linux && kvbudgets

package budgets

import (
	"fmt"
	"os"
	"testing"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/internal/recipes"
)

// TestTable is the table of the contract, each row measured once.
func TestTable(t *testing.T) {
	b := newBench(t)
	for _, c := range []int{1, 8, 32} {
		b.once("race for the head", c, b.recipe(c, 20_000, recipes.RaceHead))
	}
	for _, c := range []int{8, 32} {
		b.once("staging, everybody serves", c, b.recipe(c, 20_000, recipes.Staging))
	}
	for _, c := range []int{1, 8, 32} {
		b.once("relaxed: one of the first 8 W", c, b.recipe(c, 20_000, func(kv kvqueue.KV, prefix string) *recipes.Queue {
			return recipes.Relaxed(kv, prefix, 8*c)
		}))
	}
	for _, c := range []int{1, 8, 32} {
		b.once("etcd's recipe.Queue, 1,000 items", c, b.etcds(c, 1000))
	}
	b.once("kvqueue, 8 handles", 8, b.consumed(8, 8, 40_000))
}

// once tells a row of the table.
func (b *bench) once(what string, consumers int, r result) {
	tell(row{
		ID: "K1", What: fmt.Sprintf("%s, %d consumers; max/min %.2f, conflicts %.1f %%", what, consumers, r.fairness, r.conflicts), Unit: "/s",
		Ours: []float64{r.rate}, Once: true,
	})
}

// TestOrder is K1, K4 and K5: items a second, conflicts, and fairness.
func TestOrder(t *testing.T) {
	b := newBench(t)
	const few, many = 5000, 60_000
	took := turns(rounds,
		func() result { return b.recipe(32, few, recipes.RaceHead) },
		func() result { return b.consumed(1, 1, few) },
		func() result { return b.consumed(1, 32, many) },
		func() result { return b.consumed(8, 32, many/2) },
	)
	race, alone := valuesOf(took[0], rate), valuesOf(took[1], rate)
	for i, of := range []struct {
		handles string
		times   float64
	}{{"one handle", 10}, {"8 handles", 6}} {
		r := took[2+i]
		tell(beside("K1", "32 consumers, "+of.handles, valuesOf(r, rate), "race for the head", race, "/s", atLeast(of.times)))
		tell(row{ID: "K1", What: "32 consumers, " + of.handles + ": conflicts", Unit: "%", Ours: valuesOf(r, conflicts), Budget: atMost(2)})
		tell(row{ID: "K5", What: "32 consumers, " + of.handles + ": the items of the first by those of the last", Unit: "×", Ours: valuesOf(r, fairness), Budget: atMost(1.5)})
	}
	tell(beside("K4", "claimed and acknowledged, 32 consumers of one handle", valuesOf(took[2], rate), "one consumer", alone, "/s", atLeast(8)))
}

// TestOneProcess is K4, on the disk of the folder for temporary files and on a disk in memory: what the
// sync costs is the difference.
func TestOneProcess(t *testing.T) {
	for _, disk := range []string{os.TempDir(), "/dev/shm"} {
		t.Run(disk, func(t *testing.T) {
			if info, err := os.Stat(disk); err != nil || !info.IsDir() {
				t.Skipf("there is no %s", disk)
			}
			t.Setenv("TMPDIR", disk)
			b := newBench(t)
			one := b.consumed(1, 1, 20_000).rate
			for _, of := range []struct {
				what string
				result
			}{{"Do", b.ours(1, 32, 60_000)}, {"Consume", b.consumed(1, 32, 100_000)}, {"claims alone", b.claimed(32, 100_000)}} {
				what := fmt.Sprintf("data on %s: %s, 32 consumers of one handle", disk, of.what)
				r := beside("K4", what, []float64{of.rate}, "one consumer", []float64{one}, "/s", budget{})
				r.Once = true
				tell(r)
			}
		})
	}
}
