package boltkv

import (
	"context"
	"encoding/gob"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/internal/usersocket"
	"github.com/ambit-go/ambit/kvqueue"
)

// fakeServer says hello, and hands the first request and its connection to f.
func fakeServer(t *testing.T, h hello, f func(r *request, conn net.Conn, out *gob.Encoder)) (path string) {
	path = filepath.Join(t.TempDir(), "queue.db")
	l, remove, err := usersocket.Listen(path + ".sock")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		in, out := gob.NewDecoder(conn), gob.NewEncoder(conn)
		r := new(request)
		if in.Decode(new(hello)) == nil && out.Encode(h) == nil && in.Decode(r) == nil {
			f(r, conn, out)
		}
	}()
	t.Cleanup(func() { remove(); require.NoError(t, l.Close()); <-done })
	return path
}

func TestACommitThatWasSentAndNotAnsweredIsUnknown(t *testing.T) {
	path := fakeServer(t, hello{protocol, limits}, func(_ *request, conn net.Conn, _ *gob.Encoder) { _ = conn.Close() })
	c, err := Dial(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	_, err = c.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("k")}})
	require.ErrorIs(t, err, kvqueue.ErrUnknown)
	require.ErrorIs(t, err, ErrGone)
}

func TestACommitWhoseContextEndsAfterItWasSentIsUnknown(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan struct{})
	path := fakeServer(t, hello{protocol, limits}, func(*request, net.Conn, *gob.Encoder) { cancel(); <-answered })
	c, err := Dial(path)
	require.NoError(t, err)
	_, err = c.Commit(ctx, nil, []kvqueue.Write{{Key: []byte("k")}})
	require.ErrorIs(t, err, kvqueue.ErrUnknown)
	require.ErrorIs(t, err, context.Canceled)
	_, err = c.Commit(ctx, nil, []kvqueue.Write{{Key: []byte("k")}})
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, kvqueue.ErrUnknown, "it was not sent")
	close(answered)
	require.NoError(t, c.Close())
}

func TestAProcessWithAnotherProtocolIsAnErrorThatSaysSo(t *testing.T) {
	_, err := Dial(fakeServer(t, hello{protocol + 1, limits}, nil))
	require.Error(t, err)
	assert.Contains(t, err.Error(), "use the same version of both")
}

func TestAnErrorIsTheSameOnTheOtherSide(t *testing.T) {
	for _, kind := range kinds {
		got := faultOf(kind).error()
		assert.Equal(t, kind, got)
		for _, other := range kinds {
			assert.Equal(t, kind == other, assert.ObjectsAreEqual(got, other))
		}
	}
	require.NoError(t, faultOf(nil).error())
	err := faultOf(errClosed).error()
	require.ErrorIs(t, err, ErrGone, "what is closed there is out of reach here")
	require.NotErrorIs(t, err, kvqueue.ErrClosed)
}
