package boltkv

import (
	"context"
	"encoding/gob"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/internal/usersocket"
	"github.com/ambit-go/ambit/kvqueue"
)

// The process that has the file was stopped after it had said hello, and the callers have all the
// time of the world.
func TestACallToAProcessThatWasStoppedHasAnEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "queue.db")
	l, remove, err := usersocket.Listen(path + ".sock")
	require.NoError(t, err)
	defer remove()
	defer l.Close()
	stopped := make(chan net.Conn, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		var h hello
		assert.NoError(t, gob.NewDecoder(conn).Decode(&h))
		assert.NoError(t, gob.NewEncoder(conn).Encode(hello{protocol, limits}))
		stopped <- conn
	}()
	c, err := Dial(path)
	require.NoError(t, err)
	conn := <-stopped
	defer conn.Close()
	c.silent = time.Millisecond
	for range 200 { // more than fit between the two
		_, _, err = c.Read(context.Background(), kvqueue.Range{Begin: make([]byte, 1<<16)})
		require.ErrorIs(t, err, errSilent)
	}
	assert.NotErrorIs(t, err, context.DeadlineExceeded, "that of the caller has not ended")
	_, err = c.Session(context.Background(), time.Hour)
	assert.ErrorIs(t, err, errSilent)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = c.Read(ctx)
	assert.ErrorIs(t, err, context.Canceled)
	c.silent = time.Hour
	cause, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	_, _, err = c.Read(cause)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, c.Close())
}

func TestACommitThatIsNotAnsweredIsUnknown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "queue.db")
	l, remove, err := usersocket.Listen(path + ".sock")
	require.NoError(t, err)
	defer remove()
	defer l.Close()
	got := make(chan request, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		in := gob.NewDecoder(conn)
		var h hello
		assert.NoError(t, in.Decode(&h))
		assert.NoError(t, gob.NewEncoder(conn).Encode(hello{protocol, limits}))
		var r request
		assert.NoError(t, in.Decode(&r))
		got <- r
	}()
	c, err := Dial(path)
	require.NoError(t, err)
	c.silent = time.Millisecond
	_, err = c.Commit(context.Background(), nil, []kvqueue.Write{{Key: []byte("k")}})
	assert.ErrorIs(t, err, kvqueue.ErrUnknown)
	assert.ErrorIs(t, err, errSilent)
	assert.Equal(t, opCommit, (<-got).Op)
	require.NoError(t, c.Close())
}
