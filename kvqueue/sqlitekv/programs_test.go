//go:build unix

package sqlitekv_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/internal/proof"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// Processes that share a file use a queue at random, while transactions go wrong, and
// processes are killed with kill -9 and stopped.
func TestRandomProgramsOfProcesses(t *testing.T) {
	for seed, workers := range []int{4, 16} {
		t.Run(fmt.Sprint(workers, " workers"), func(t *testing.T) {
			path := newPath(t)
			proof.Program{
				Seed: uint64(seed), Store: path, Open: opener(path), Watch: opener(path),
				TTL: time.Second, Second: 50 * time.Millisecond,
				Workers: workers, Steps: 6, Every: 120,
			}.Run(t)
		})
	}
}

// Handles of two stores on one file, while transactions go wrong.
func TestHistoriesOnAFileAreLinearizable(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			path, h := newPath(t), proof.NewHistory(seed)
			h.Steady = true
			one, two := openFile(t, path), openFile(t, path)
			var clients []*proof.Client
			for i, kv := range []kvqueue.KV{one, two, two} {
				c, err := proof.NewClient(t.Context(), h, fmt.Sprint(i), proof.NewDice(seed), kv, func(kv kvqueue.KV) kvqueue.KV {
					faulty := memkv.NewFaulty(kv, h.Faults)
					t.Cleanup(faulty.Wait)
					return faulty
				}, proof.Limits(kvqueue.TTL(time.Hour))...)
				require.NoError(t, err)
				c.Second, c.Groups, c.IDs = 100*time.Millisecond, int(seed), 3*int(seed)
				clients = append(clients, c)
			}
			h.Record(t, one, clients, 8, nil)
			h.Check(t)
		})
	}
}

// Sixteen processes share a file; some are killed with kill -9, or stand still, in the middle of a
// claim.
func TestHistoriesOfProcessesThatDieAreLinearizable(t *testing.T) {
	for _, workers := range []int{3, 16} {
		t.Run(fmt.Sprint(workers, " workers"), func(t *testing.T) {
			path := newPath(t)
			proof.Tellers{
				Seed: 1, Store: path, Open: opener(path), TTL: time.Second, Second: 100 * time.Millisecond,
				Workers: workers, Each: max(2, 15/workers), Strikes: 6,
			}.Run(t)
		})
	}
}
