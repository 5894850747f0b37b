package clitest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
)

// ports are those that were given out, with what keeps other processes from them: none is given
// twice, so that no server is taken for another that has not bound its port yet, or that is
// started again.
var ports struct {
	sync.Mutex
	given map[int]net.Listener
}

// lowest is the first port that is given out, where there is room below those that the system
// gives to connections, and to listeners that ask for any.
const lowest = 10_000

// FreePort returns a port of the loopback interface on which nobody listens, for a server that must be told its port.
//
//	cmd := exec.Command("redis-server", "--bind", "127.0.0.1", "--port", clitest.FreePort(t))
//
// # Details
//
// It stays free until the server listens there, and while that is started again: no other call gives it again, and
// on Linux no other process that calls it, and the system gives it to nobody who connects or asks for any port.
// Elsewhere, and where the system keeps hardly any port for servers, it is one that the system gives, and may be
// taken by others. A server that can tell which port it has is better asked for port 0.
func FreePort(t testing.TB) string {
	t.Helper()
	ports.Lock()
	defer ports.Unlock()
	if ports.given == nil {
		ports.given = map[int]net.Listener{}
	}
	for range 10_000 {
		p, err := freePort(lowest, firstOfConnections())
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := ports.given[p]; p == 0 || twice {
			continue
		}
		var mine net.Listener
		if runtime.GOOS == "linux" { // a name that goes with this process
			if mine, err = net.Listen("unix", fmt.Sprint("@ambit-port-", p)); err != nil {
				continue
			}
		}
		ports.given[p] = mine
		return strconv.Itoa(p)
	}
	t.Fatal("no port is free")
	return ""
}

// freePort returns a port from low on, below high, that nobody listens on; 0 if somebody does. Where
// there are few of these it is any that the system gives.
func freePort(low, high int) (int, error) {
	want := 0
	if high-low > 1000 {
		want = low + rand.IntN(high-low)
	}
	l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", want))
	if err != nil && want != 0 {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// firstOfConnections is the first of the ports that the system gives to connections; 0 where it is not
// known.
func firstOfConnections() (first int) {
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		_, _ = fmt.Sscan(string(text), &first)
	}
	return first
}
