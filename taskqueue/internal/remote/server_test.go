package remote

import (
	"net"
	"net/rpc"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue/memstore"
)

// crowded is a listener of a process that has no file left for the first connections.
type crowded struct {
	net.Listener
	failures int
}

func (l *crowded) Accept() (net.Conn, error) {
	if l.failures--; l.failures >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return l.Listener.Accept()
}

func TestAServerThatHadNoFileLeftGoesOn(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := memstore.New()
	v := serveOn(&crowded{Listener: l, failures: 2}, func() {}, s)
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	c := &Client{rpc.NewClient(conn)}
	queues, err := c.Queues(t.Context())
	require.NoError(t, err)
	assert.Empty(t, queues)
	require.NoError(t, c.Close())
	require.NoError(t, v.Close())
	require.NoError(t, s.Close())
}
