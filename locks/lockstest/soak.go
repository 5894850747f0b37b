package lockstest

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Soak has the faults of [Matrix] happen one after the other, in an order of chance, to
// the same processes and the same server, for as long as LOCKS_SOAK says (10m); without it
// the test is skipped. LOCKS_SEED repeats an order. Some of the time passes with a process
// killed and another started, so the history is that of many.
func Soak(t *testing.T, target Target) {
	d := duration(t, "LOCKS_SOAK", 0)
	if d == 0 {
		t.Skip("LOCKS_SOAK says for how long, such as 10m")
	}
	seed := number(t, "LOCKS_SEED", uint64(time.Now().UnixNano()))
	t.Logf("LOCKS_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	server, url := target.Start(t)
	r := newRow(t, &target, server, url, row{network: target.Via != nil, config: func(c *childConfig) { c.Hold = c.Lease / 4 }})
	var faults []row
	for _, row := range rows() {
		possible := (!row.network || target.Via != nil) && (!row.server || server != nil) && !row.clock && !row.alone
		if possible {
			faults = append(faults, row)
		}
	}
	for range 3 {
		r.start()
	}
	r.everybody(0, Granted)
	n := 0
	for end := time.Now().Add(d); time.Now().Before(end); n++ {
		row := faults[random.IntN(len(faults))]
		t.Log(row.name)
		row.fault(r)
		r.everybody(Now(), Granted)
	}
	r.end()
	r.check(false)
	t.Logf("%d faults", n)
}
