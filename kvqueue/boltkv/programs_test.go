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
			own := openFile(t, path)
			client, err := boltkv.Dial(path)
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, client.Close()) })
			var handles []*kvqueue.Queue
			for _, kv := range []kvqueue.KV{own, client, client} {
				faulty := memkv.NewFaulty(kv, h.Faults)
				t.Cleanup(faulty.Wait)
				handles = append(handles, openQueue(t, h.Noted(faulty)))
			}
			h.Record(t, handles, 10)
			h.Check(t)
		})
	}
}
