//go:build unix

package boltkv_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/boltkv"
	"github.com/ambit-go/ambit/kvqueue/internal/proof"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// Processes that share a file use a queue at random, while transactions go wrong, and
// processes, that which has the file too, are killed with kill -9 and stopped.
func TestRandomProgramsOfProcesses(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			path := newPath(t)
			proof.Program{
				Seed: seed, Store: path, Open: shared(path), Watch: dialed(path),
				TTL: time.Second, Second: 50 * time.Millisecond,
				Workers: 4, Steps: 6, Every: 120,
			}.Run(t)
		})
	}
}

// dialed reaches the process that has a file, and never has it.
func dialed(path string) proof.Opener {
	return func(context.Context) (kvqueue.KV, func(), error) {
		c, err := boltkv.Dial(path)
		if err != nil {
			return nil, nil, err
		}
		return c, func() { _ = c.Close() }, nil
	}
}

// Handles of the process that has the file, and of one that goes through its socket, while
// transactions go wrong.
func TestHistoriesOnAFileAreLinearizable(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			path, h := newPath(t), proof.NewHistory(seed)
			h.Steady = true
			own := openFile(t, path)
			through, err := boltkv.Dial(path)
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, through.Close()) })
			var clients []*proof.Client
			for i, kv := range []kvqueue.KV{own, through, through} {
				c, err := proof.NewClient(t.Context(), h, fmt.Sprint(i), proof.NewDice(seed), kv, func(kv kvqueue.KV) kvqueue.KV {
					faulty := memkv.NewFaulty(kv, h.Faults)
					t.Cleanup(faulty.Wait)
					return faulty
				}, proof.Limits(kvqueue.TTL(time.Hour))...)
				require.NoError(t, err)
				c.Second = 100 * time.Millisecond
				clients = append(clients, c)
			}
			h.Record(t, own, clients, 8, nil)
			h.Check(t)
		})
	}
}

// Processes that share a file are killed with kill -9, or stand still, in the middle of a claim.
func TestHistoriesOfProcessesThatDieAreLinearizable(t *testing.T) {
	path := newPath(t)
	proof.Tellers{
		Seed: 1, Store: path, Open: shared(path), TTL: time.Second, Second: 100 * time.Millisecond,
		Workers: 3, Each: 5, Strikes: 6,
	}.Run(t)
}
