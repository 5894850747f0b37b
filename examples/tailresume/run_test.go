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
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/clitest"
)

func TestMain(m *testing.M) {
	testscript.Main(clitest.LeakChecked(m), map[string]func(){"tailresume": main})
}

// TestScripts runs the program as its users do.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Cmds: clitest.Commands[*testscript.TestScript](), Setup: clitest.Setup[*testscript.Env]})
}

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

// The two logs that the program calls equal are compared: a byte that is lost on the way to the
// consumer is noticed. A log that is shorter than what has come of it is another one.
func TestADifferenceIsNoticed(t *testing.T) {
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	defer func() { _ = log.Close() }()
	_, err = log.WriteString("ab")
	require.NoError(t, err)
	sum := sha256.Sum256([]byte("ac"))
	assert.ErrorContains(t, compare(log, sum[:], new(follower)), "they are not the 2 that were written")

	server := httptest.NewServer(&logServer{file: log, over: func() bool { return true }})
	defer server.Close()
	f := &follower{client: server.Client(), url: server.URL, offset: 100}
	assert.ErrorContains(t, f.follow(t.Context()), "it is not the one that was begun with")
}

// A connection is accepted and closed at once, and the next attempt is an hour away
// when the signal comes.
func TestASignalEndsAPause(t *testing.T) {
	clitest.Signals(t, func(t *testing.T, sig syscall.Signal, status int) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer func() { _ = ln.Close() }()
		p := clitest.Start(t, nil, "tailresume", "-pause", "1h", "-url", "http://"+ln.Addr().String())
		conn, err := ln.Accept()
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		p.WaitForStderr("next attempt in")
		p.Signal(sig)
		assert.Equal(t, status, p.Wait())
		assert.True(t, strings.HasSuffix(p.Stderr(), "\ntailresume: stopped by signal: "+sig.String()+"\n"), p.Stderr())
	})
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

// waiting returns how many bytes are in a pipe.
func waiting(r *os.File) (n int32) {
	_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, r.Fd(), 0x541b, uintptr(unsafe.Pointer(&n))) // FIONREAD
	return n
}

// The reader of the output is there and does not read, so a write waits for it. The first
// signal tells the script, the second kills it, and only the third ends the program.
func TestAThirdSignalEndsAWriteThatNobodyTakes(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("FIONREAD is another number there")
	}
	r, w, err := os.Pipe() // of 64 KiB
	require.NoError(t, err)
	defer func() { _ = r.Close() }()
	const page = 4 << 10
	_, err = w.Write(make([]byte, page)) // with this in it, it never has room for a piece
	require.NoError(t, err)
	told := filepath.Join(t.TempDir(), "told")
	p := clitest.Start(t, func(cmd *exec.Cmd) { cmd.Stdout = w }, "tailresume", "-cut", "0", "-script",
		"trap 'echo $$ >"+told+"' TERM; head -c 200000 /dev/zero; while :; do sleep 0.1; done")
	require.NoError(t, w.Close())
	clitest.Eventually(t, "it writes a piece", func() bool { return waiting(r) > page })
	p.Signal(syscall.SIGINT)
	var group int
	clitest.Eventually(t, "the script is told", func() bool {
		text, _ := os.ReadFile(told)
		_, err := fmt.Sscan(string(text), &group)
		return err == nil
	})
	p.Signal(syscall.SIGTERM)
	clitest.Eventually(t, "the script is killed", func() bool { return len(clitest.InGroup(t, group)) == 0 })
	assert.NotEmpty(t, clitest.Alive(t, p.Pid()), "the write still waits")
	p.Signal(syscall.SIGINT)
	assert.Equal(t, 130, p.Wait())
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
	assert.Equal(t, 141, p.Wait())
	assert.Regexp(t, `\A(tailresume: at byte .*\n)*tailresume: stopped by signal: broken pipe: write /dev/stdout: broken pipe\n\z`, p.Stderr())
	assertNothingLeft(t, first, dir)
}
