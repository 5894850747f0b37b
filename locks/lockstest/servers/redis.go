package servers

import (
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ambit-go/ambit/clitest"
)

// Redis starts a Redis server that writes every step to its append-only file. args are
// more settings, as "--maxmemory", "1mb".
func Redis(t testing.TB, args ...string) *Server {
	t.Helper()
	path, dir, p := program(t, "redis-server"), t.TempDir(), clitest.FreePort(t)
	if slices.Contains(args, "--cluster-enabled") {
		args = append([]string{"--cluster-port", clitest.FreePort(t)}, args...)
	}
	all := append([]string{
		"--port", p, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "yes", "--appendfsync", "always",
		"--maxmemory-policy", "noeviction",
	}, args...)
	s := &Server{URL: "redis://127.0.0.1:" + p + "/0", Network: "tcp", Address: "127.0.0.1:" + p, t: t}
	s.command = func() *exec.Cmd { return exec.Command(path, all...) }
	s.ready = func() error { return pings(s.Address) }
	return s.start()
}

// pings says whether a Redis server answers.
func pings(address string) error {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	answer := make([]byte, 64)
	n, err := c.Read(answer)
	if err == nil && !strings.HasPrefix(string(answer[:n]), "+PONG") {
		err = fmt.Errorf("redis says %q", answer[:n])
	}
	return err
}
