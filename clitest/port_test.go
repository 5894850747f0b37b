package clitest

import (
	"fmt"
	"net"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// A port is given to one process at a time, and to no connection, also while nobody listens on it.
func TestAPortIsNobodyElses(t *testing.T) {
	first := firstOfConnections()
	for range 20 {
		p, err := strconv.Atoi(FreePort(t))
		require.NoError(t, err)
		if first-lowest > 1000 {
			require.Less(t, p, first)
		}
		if runtime.GOOS == "linux" {
			_, err = net.Listen("unix", fmt.Sprint("@ambit-port-", p))
			require.Error(t, err)
		}
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", p))
		require.NoError(t, err)
		require.NoError(t, l.Close())
	}
}
