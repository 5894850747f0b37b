//go:build unix

package main

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/examples/internal/clitest"
)

// Whatever the bytes and wherever the cuts: a log of short, long, empty and binary
// lines, with a last one that has no newline.
func TestReceivedIsWhatWasWritten(t *testing.T) {
	for _, tc := range []struct{ cut, size int }{{400, 20_000}, {4_000, 400_000}, {50_000, 2_000_000}, {0, 2_000_000}} {
		t.Run(fmt.Sprint("cut ", tc.cut), func(t *testing.T) {
			data := randomLog(uint64(tc.cut), tc.size)
			file := filepath.Join(t.TempDir(), "log")
			require.NoError(t, os.WriteFile(file, data, 0o600))
			p := clitest.Start(t, nil, "tailresume", "-cut", strconv.Itoa(tc.cut), "-pause", "1ms",
				"-script", fmt.Sprintf("for i in 0 1 2 3; do tail -c +$((i*%d+1)) %s | head -c %[1]d; sleep 0.02; done", tc.size/4, file))
			require.Zero(t, p.Wait(), p.Stderr())
			assert.Equal(t, sha256.Sum256(data), sha256.Sum256([]byte(p.Stdout())))
			assert.Contains(t, p.Stderr(), fmt.Sprintf("sha256 %.8x, as written", sha256.Sum256(data)))
			if broken := strings.Count(p.Stderr(), "next attempt in"); tc.cut > 0 {
				assert.Greater(t, broken, tc.size/tc.cut/2, "not much of a test")
			}
		})
	}
}

// randomLog makes up a log. Its size is a multiple of 4 if size is.
func randomLog(seed uint64, size int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	var b []byte
	for len(b) < size {
		for range r.IntN(200) * r.IntN(3) {
			b = append(b, byte(r.UintN(256)))
		}
		if r.IntN(50) == 0 {
			b = append(b, strings.Repeat("long ", r.IntN(4000))...)
		}
		b = append(b, '\n')
	}
	b = b[:size]
	b[size-1] = '.'
	return b
}

// What the program says is equal is compared: a byte that is lost on the way to the
// consumer is noticed.
func TestADifferenceIsNoticed(t *testing.T) {
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	defer func() { _ = log.Close() }()
	_, err = log.WriteString("ab")
	require.NoError(t, err)
	sum := sha256.Sum256([]byte("ac"))
	assert.ErrorContains(t, compare(log, sum[:], new(follower)), "they are not the 2 that were written")
}

// A log that is shorter than what has come of it is another one.
func TestALogThatHasShrunk(t *testing.T) {
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	defer func() { _ = log.Close() }()
	server := httptest.NewServer(&logServer{file: log, over: func() bool { return true }})
	defer server.Close()
	f := &follower{client: server.Client(), url: server.URL, offset: 100}
	assert.ErrorContains(t, f.follow(t.Context()), "it is not the one that was begun with")
}

// A connection is accepted and closed at once, and the next attempt is an hour away
// when the signal comes.
func TestASignalEndsAPause(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer func() { _ = ln.Close() }()
			p := clitest.Start(t, nil, "tailresume", "-pause", "1h", "-url", "http://"+ln.Addr().String())
			conn, err := ln.Accept()
			require.NoError(t, err)
			require.NoError(t, conn.Close())
			p.WaitForStderr("next attempt in")
			p.Signal(sig)
			assert.Equal(t, 128+int(sig), p.Wait())
			assert.True(t, strings.HasSuffix(p.Stderr(), "\ntailresume: stopped by signal: "+sig.String()+"\n"), p.Stderr())
		})
	}
}

// Nothing comes over a connection that lives when the signal comes.
func TestASignalEndsARead(t *testing.T) {
	begun := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Log-Offset", "0")
		_ = http.NewResponseController(w).Flush()
		close(begun)
		<-r.Context().Done()
	}))
	defer server.Close()
	p := clitest.Start(t, nil, "tailresume", "-url", server.URL)
	<-begun
	p.Signal(syscall.SIGINT)
	assert.Equal(t, 130, p.Wait())
	assert.Equal(t, "tailresume: stopped by signal: interrupt\n", p.Stderr())
}

// startEndless starts the demo with a script that tells its process group, then writes
// and never ends; its log is in a directory.
func startEndless(t *testing.T, change func(*exec.Cmd)) (p *clitest.Process, dir string) {
	dir = t.TempDir()
	return clitest.Start(t, func(cmd *exec.Cmd) {
		cmd.Env = append(os.Environ(), "TMPDIR="+dir)
		if change != nil {
			change(cmd)
		}
	}, "tailresume", "-cut", "5000", "-script", `echo "group $$"; sleep 1000 & seq 1 100000; sleep 1000`), dir
}

// assertNothingLeft fails the test if the process group that a line tells of is left,
// or a log.
func assertNothingLeft(t *testing.T, line, dir string) {
	t.Helper()
	group, err := strconv.Atoi(strings.TrimPrefix(line, "group "))
	require.NoError(t, err, line)
	assert.Empty(t, clitest.InGroup(t, group), "something of the script is left")
	logs, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	assert.Empty(t, logs)
}

func TestASignalStopsTheScriptToo(t *testing.T) {
	p, dir := startEndless(t, nil)
	line := p.WaitFor("group")
	p.Signal(syscall.SIGINT)
	assert.Equal(t, 130, p.Wait())
	assert.Contains(t, p.Stderr(), "tailresume: stopped by signal: interrupt\n")
	assertNothingLeft(t, line, dir)
}

// The reader of our output closes it after a line, as head -1 does.
func TestAReaderThatHasGoneEndsTheScriptToo(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	p, dir := startEndless(t, func(cmd *exec.Cmd) { cmd.Stdout = w })
	require.NoError(t, w.Close())
	line := make([]byte, 6+20)
	n, err := r.Read(line)
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(line[:n]), "\n")
	require.NoError(t, r.Close())
	assert.Equal(t, 1, p.Wait())
	assert.Contains(t, p.Stderr(), "broken pipe")
	assertNothingLeft(t, first, dir)
}
