package scripttest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
)

// The ports that the system gives to whoever asks for any: on Linux these, if nobody has changed that.
const given = 32768

var handedOut sync.Map // ports, of FreePort

// FreePort returns a port on which nobody listens. It is none of those that the system gives to others: one of these
// might be another's before the test comes to listen there.
func FreePort(t *testing.T) string {
	t.Helper()
	first := given
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		_, _ = fmt.Sscan(string(text), &first)
	}
	const least = 10_000
	for range 100 {
		port := strconv.Itoa(least + rand.IntN(max(first-least, 1)))
		if _, taken := handedOut.LoadOrStore(port, true); taken {
			continue
		}
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port)); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("there is no free port")
	return ""
}
