//go:build unix

package boltkv_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/internal/fulldisk"
	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/boltkv"
)

// What was acknowledged is there when there is room again, and the store goes on.
func TestAFullDisk(t *testing.T) {
	if !fulldisk.Alone(t) {
		return
	}
	path := newPath(t)
	s := openFile(t, path)
	queues := []*kvqueue.Queue{openQueue(t, s), openQueue(t, dial(t, path))}
	undo := fulldisk.Limit(t, 1<<20)
	var err error
	n := 0
	for ; err == nil && n < 1000; n++ {
		_, err = queues[n%2].Enqueue(t.Context(), fmt.Appendf(make([]byte, 20_000), "%d", n))
	}
	n-- // the last was not added
	require.ErrorIs(t, err, kvqueue.ErrNoSpace)
	require.NotErrorIs(t, err, kvqueue.ErrUnknown)
	assert.Contains(t, err.Error(), "make room on the disk of "+path)
	undo()
	for i := range 2 {
		_, err = queues[i].Enqueue(t.Context(), []byte("there is room"))
		require.NoError(t, err)
	}
	require.Len(t, drain(t, queues[0]), n+2)
}

// A file that was begun on a full disk is begun anew.
func TestAFullDiskAtTheFirstOpen(t *testing.T) {
	if !fulldisk.Alone(t) {
		return
	}
	path := newPath(t)
	undo := fulldisk.Limit(t, 5000)
	_, err := boltkv.Open(path)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "the disk is full")
	undo()
	openFile(t, path)
}
