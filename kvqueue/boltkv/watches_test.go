package boltkv

import (
	"bufio"
	"encoding/gob"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Both wait to be sent: the process that has the file would not know what is to end, and would
// send changes for as long as the connection lasts.
func TestTheEndOfAWatchIsNotSentBeforeIt(t *testing.T) {
	for range 50 { // which of the two is taken first is drawn
		near, far := net.Pipe()
		c := &Client{conn: near, sends: make(chan *request, 64), gone: make(chan struct{}), bell: make(chan struct{}, 1)}
		watch := &request{ID: 7, Op: opWatch}
		require.NoError(t, c.send(t.Context(), watch))
		c.unwatch(watch)
		out := bufio.NewWriter(near)
		c.ended.Go(func() { c.write(gob.NewEncoder(out), out) })
		in := gob.NewDecoder(far)
		var first, second request
		require.NoError(t, in.Decode(&first))
		require.NoError(t, in.Decode(&second))
		assert.Equal(t, []op{opWatch, opForget}, []op{first.Op, second.Op})
		require.NoError(t, c.Close())
		require.NoError(t, far.Close())
		if t.Failed() {
			return
		}
	}
}
