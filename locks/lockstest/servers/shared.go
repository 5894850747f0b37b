package servers

import (
	"sync"
	"testing"

	"go.uber.org/goleak"
)

var shared struct {
	sync.Mutex
	server *Server
	ends   []func()
}

// Shared starts a server for all tests of a package, when the first of them asks for it.
// Tests that do nothing to the server itself use it, each with a database of its own. The
// TestMain of the package runs them by [Ending].
func Shared(t testing.TB, start func(t testing.TB, args ...string) *Server) *Server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock() // also if start skips the test
	if shared.server == nil {
		shared.server = start(keeper{t})
	}
	return shared.server
}

// Ending are the tests of a package, and the end of their shared server, if there is one, and of
// the goroutines of connections that were closed. [goleak.VerifyTestMain] by itself waits for these
// for less than half a second, which is little on a busy machine.
type Ending struct{ M *testing.M }

// Run runs the tests and stops the server.
func (e Ending) Run() int {
	code := e.M.Run()
	stopShared()
	for range 60 { // half a minute; what is left then is a leak
		if goleak.Find() == nil {
			break
		}
	}
	return code
}

func stopShared() {
	shared.Lock()
	defer shared.Unlock()
	for i := len(shared.ends) - 1; i >= 0; i-- {
		shared.ends[i]()
	}
	shared.server, shared.ends = nil, nil
}

// keeper is a test whose clean-up is that of the package.
type keeper struct{ testing.TB }

// Cleanup is called with shared locked.
func (keeper) Cleanup(f func()) { shared.ends = append(shared.ends, f) }
