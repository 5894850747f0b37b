package locks

import (
	"os"
	"time"

	"github.com/ambit-go/ambit/bench/internal/measure"
)

// tell writes a row for the program that writes the page, if that has started the tests.
func tell(r measure.Row) {
	if os.Getenv("BENCH_RECORDS") == "" {
		return
	}
	if err := measure.Write(os.Stdout, measure.Record{Row: &r}); err != nil {
		panic(err)
	}
}

// uncontended are the budgets L1 and L2, by the peer, and that of etcd.
var uncontended = map[string]struct {
	id    string
	limit measure.Budget
}{
	"bsm/redislock":               {"L1", measure.AtMost(1.5)},
	"by hand, a transaction each": {"L2", measure.AtMost(0.67)},
	"etcd, concurrency.Mutex":     {"L1", measure.AtMost(1.3)},
}

// tellUncontended tells how the first of libraries that took turns stands beside the others.
func tellUncontended(libs []library, took []measure.Sample) {
	const what = "taken and given back, nobody else: "
	if len(libs) == 1 {
		r := measure.Row{ID: "L1", What: what + libs[0].name, Unit: "µs", Ours: micros(took[0])}
		if libs[0].name == "ambit on SQLite" {
			r.ID, r.Budget = "L3", measure.AtMost(100)
		}
		tell(r)
	}
	for i, peer := range libs[1:] {
		b := uncontended[peer.name]
		if b.id == "" {
			b.id = "L1"
		}
		tell(measure.Row{ID: b.id, What: what + libs[0].name, Peer: peer.name, Unit: "µs", Ours: micros(took[0]), Theirs: micros(took[i+1]), Ratio: true, Budget: b.limit})
	}
}

// handOffs are the budgets L4.
var handOffs = map[string]measure.Budget{"redis": measure.AtMost(0.5), "postgres": measure.AtMost(1.5), "sqlite": measure.AtMost(20)}

// tellWaits tells L5: how much longer than the median the unluckiest wait.
func tellWaits(name, among string, budget bool, p50, p99 time.Duration) {
	r := measure.Row{ID: "L5", What: "p99 / p50 of the wait among " + among + ", " + name, Unit: "×", Ours: measure.Sample{float64(p99) / float64(p50)}, Once: true}
	if budget {
		r.Budget = measure.AtMost(1.5)
	}
	tell(r)
}

func millis(all []time.Duration) (s measure.Sample) {
	for _, d := range all {
		s = append(s, d.Seconds()*1e3)
	}
	return s
}

func micros(nanos measure.Sample) (s measure.Sample) {
	for _, n := range nanos {
		s = append(s, n/1e3)
	}
	return s
}

func durations(nanos measure.Sample) (all []time.Duration) {
	for _, n := range nanos {
		all = append(all, time.Duration(n))
	}
	return all
}
