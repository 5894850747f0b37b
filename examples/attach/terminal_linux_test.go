package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/clitest"
)

// A terminal is stdin and stdout at once: it blocks as before, or a write that has to wait would fail.
func TestATerminalGoesOnBlocking(t *testing.T) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	defer master.Close()
	var unlock, number int32
	control(t, syscall.SYS_IOCTL, master.Fd(), syscall.TIOCSPTLCK, unsafe.Pointer(&unlock))
	control(t, syscall.SYS_IOCTL, master.Fd(), syscall.TIOCGPTN, unsafe.Pointer(&number))
	fd, err := syscall.Open(fmt.Sprint("/dev/pts/", number), syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	require.NoError(t, err)
	terminal := os.NewFile(uintptr(fd), "terminal")
	defer terminal.Close()

	e := container(t, "exec sleep 600")
	server := httptest.NewServer(e)
	defer server.Close()
	p := clitest.Start(t, func(cmd *exec.Cmd) { cmd.Stdin, cmd.Stdout = terminal, terminal },
		"attach", "-host", "tcp://"+server.Listener.Addr().String(), "it")
	clitest.Eventually(t, "the container runs", func() bool { return len(e.pid) == 1 })
	assert.Zero(t, control(t, syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFL, nil)&syscall.O_NONBLOCK)
	p.Signal(syscall.SIGTERM)
	assert.Equal(t, 143, p.Wait(), p.Stderr())
}

// control makes a call of the system about a descriptor.
func control(t *testing.T, call, fd, what uintptr, argument unsafe.Pointer) uintptr {
	t.Helper()
	result, _, errno := syscall.Syscall(call, fd, what, uintptr(argument))
	require.Zero(t, errno)
	return result
}
