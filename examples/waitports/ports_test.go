//go:build unix

package main

import (
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/examples/internal/clitest"
)

// reserve returns an address that stays closed, and nobody else's, until the test
// listens there: a socket is bound to it that does not listen.
func reserve(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	require.NoError(t, syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1))
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	name, err := syscall.Getsockname(fd)
	require.NoError(t, err)
	return fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
}

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// column is one column of the report that p has printed.
func column(p *clitest.Process, n int) (column []string) {
	for _, line := range strings.Split(strings.TrimSpace(p.Stdout()), "\n")[1:] {
		column = append(column, strings.Fields(line)[n])
	}
	return column
}

func TestPortThatOpensLateIsWaitedFor(t *testing.T) {
	late, up := reserve(t), listen(t, "127.0.0.1:0").Addr().String()
	p := clitest.Start(t, nil, "waitports", "-v", "late="+late+"@1m", "up="+up)
	p.WaitForStderr("late is not up: connect: connection refused")
	p.WaitForStderr("up is up")
	listen(t, late)
	assert.Equal(t, 0, p.Wait())
	assert.Equal(t, []string{"late", "up"}, column(p, 0), "the order of the arguments")
	assert.Equal(t, []string{late, up}, column(p, 1))
	assert.Equal(t, []string{"up", "up"}, column(p, 2))
	assert.Contains(t, p.Stderr(), "late is up")
}

func TestPortThatNeverOpensIsGivenUpAndTheOthersAreNot(t *testing.T) {
	late := reserve(t)
	p := clitest.Start(t, nil, "waitports", "-v", "never="+reserve(t)+"@200ms", "late="+late+"@1m")
	p.WaitForStderr("late is not up")
	listen(t, late)
	assert.Equal(t, 124, p.Wait())
	assert.Equal(t, []string{"down", "up"}, column(p, 2))
	assert.Contains(t, p.Stdout(), "limit 200ms; ")
	assert.Contains(t, p.Stderr(), "waitports: 1 of 2: not up in time")
}

func TestAnyDoesNotWaitForTheRest(t *testing.T) {
	late := reserve(t)
	p := clitest.Start(t, nil, "waitports", "-v", "-any", "-timeout", "24h", "never="+reserve(t), "late="+late, "neither="+reserve(t))
	p.WaitForStderr("never is not up")
	p.WaitForStderr("late is not up")
	p.WaitForStderr("neither is not up")
	listen(t, late)
	assert.Equal(t, 0, p.Wait())
	assert.Equal(t, []string{"never", "late", "neither"}, column(p, 0))
	assert.Equal(t, []string{"unneeded", "up", "unneeded"}, column(p, 2))
}

func TestPortThatFlapsIsSeenToDoSo(t *testing.T) {
	address := reserve(t)
	p := clitest.Start(t, nil, "waitports", "-v", "-steady", "1000000", "-timeout", "24h", "flapping="+address)
	p.WaitForStderr("flapping is not up")
	open := listen(t, address)
	p.WaitForStderr("flapping accepts connections, 2 of 1000000")
	_ = open.Close()
	p.WaitForStderr("of 1000000\nwaitports: flapping is not up: connect: connection refused")
	p.Signal(os.Interrupt)
	assert.Equal(t, 130, p.Wait())
	assert.Regexp(t, `flapping .* stopped .* stopped by signal: interrupt; accepted \d+ of \d+ connections, never enough in a row; last: connect: connection refused`, p.Stdout())
}

func TestSignalStopsTheWaitAndReports(t *testing.T) {
	for sig, status := range map[os.Signal]int{os.Interrupt: 130, syscall.SIGTERM: 143} {
		for _, mode := range []string{"-any=false", "-any"} {
			p := clitest.Start(t, nil, "waitports", mode, "-v", "-timeout", "24h", "a="+reserve(t), "b="+reserve(t))
			p.WaitForStderr("a is not up")
			p.WaitForStderr("b is not up")
			p.Signal(sig)
			assert.Equal(t, status, p.Wait())
			assert.Equal(t, []string{"a", "b"}, column(p, 0))
			assert.Equal(t, []string{"stopped", "stopped"}, column(p, 2))
			assert.True(t, strings.HasSuffix(p.Stderr(), "waitports: stopped by signal: "+sig.String()+"\n"), p.Stderr())
		}
	}
}
