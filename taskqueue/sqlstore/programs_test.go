//go:build unix

package sqlstore

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue/taskqueuetest"
)

// programs is how many random programs each test runs: PROGRAMS in the environment, or n.
func programs(n uint64) uint64 {
	if more, err := strconv.ParseUint(os.Getenv("PROGRAMS"), 10, 64); err == nil {
		return more
	}
	return n
}

// inBubble runs a program on a database in memory, where time costs nothing.
func inBubble(t *testing.T, text []byte) (err error) {
	synctest.Test(t, func(t *testing.T) {
		s, failed := OpenFile(context.Background(), memory)
		require.NoError(t, failed)
		err = taskqueuetest.Program(s, text, 3*time.Second, true)
		require.NoError(t, s.Close())
	})
	return err
}

func TestRandomProgramsInMemory(t *testing.T) {
	for seed := range programs(20) {
		text := taskqueuetest.RandomText(seed, 600)
		if err := inBubble(t, text); err != nil {
			text = taskqueuetest.Shrink(text, func(text []byte) bool { return inBubble(t, text) != nil })
			t.Fatalf("seed %d, as short as it gets: %v\ntext %q", seed, inBubble(t, text), text)
		}
	}
}

func TestRandomProgramsOnSQLite(t *testing.T) {
	first := uint64(time.Now().UnixNano())
	for seed := first; seed < first+programs(6); seed++ {
		s := openTemp(t)
		if err := taskqueuetest.Program(s, taskqueuetest.RandomText(seed, 500), 20*time.Millisecond, false); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		require.NoError(t, s.Close())
	}
}

func TestRandomProgramsOnPostgres(t *testing.T) {
	pool := poolOf(t, emptyDatabase(t))
	first := uint64(time.Now().UnixNano())
	for seed := first; seed < first+programs(6); seed++ {
		s, err := New(context.Background(), pool, Prefix(fmt.Sprintf("p%d_", seed-first)))
		require.NoError(t, err)
		if err := taskqueuetest.Program(s, taskqueuetest.RandomText(seed, 500), 30*time.Millisecond, false); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		require.NoError(t, s.Close())
	}
}
