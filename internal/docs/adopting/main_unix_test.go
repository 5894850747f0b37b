//go:build unix

package adopting

import (
	"bufio"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTheServerIsDrainedByTERM runs main in a process of its own.
func TestTheServerIsDrainedByTERM(t *testing.T) {
	program := exec.CommandContext(t.Context(), os.Args[0])
	program.Env = append(os.Environ(), "ADOPTING=main", "LISTEN=127.0.0.1:0")
	program.Stderr = os.Stderr
	out, err := program.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, program.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	address := strings.TrimSpace(strings.TrimPrefix(line, "listening on "))

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	status := func(path string) int {
		response, err := client.Get("http://" + address + path)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	require.Equal(t, http.StatusOK, status("/"))
	for status("/ready") != http.StatusOK { // the server may run before the other service does
		time.Sleep(time.Millisecond)
	}
	require.NoError(t, program.Process.Signal(syscall.SIGTERM))
	require.NoError(t, program.Wait(), "drained: exit status 0")
}

func TestTheServerSaysThatItCannotListen(t *testing.T) {
	program := exec.CommandContext(t.Context(), os.Args[0])
	program.Env = append(os.Environ(), "ADOPTING=main", "LISTEN=nowhere:nothing")
	out, err := program.CombinedOutput()
	var exit *exec.ExitError
	require.True(t, errors.As(err, &exit), string(out))
	require.Equal(t, 1, exit.ExitCode())
	require.Contains(t, string(out), "listen tcp")
}
