package servers

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDynaliteOutlivesARequestThatBreaksOff resets a connection in the middle of a request,
// as the matrix of faults does.
func TestDynaliteOutlivesARequestThatBreaksOff(t *testing.T) {
	s := Dynalite(t)
	for range 20 {
		c, err := net.Dial(s.Network, s.Address)
		require.NoError(t, err)
		_, err = fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: db\r\n\r\nPOST / HTTP/1.1\r\nHost: db\r\nContent-Length: 100\r\n\r\nthe first part")
		require.NoError(t, err)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err = c.Read(make([]byte, 1)) // it has the first request, and what came with it
		require.NoError(t, err)
		require.NoError(t, c.(*net.TCPConn).SetLinger(0))
		require.NoError(t, c.Close())
		require.NoError(t, s.ready())
	}
}
