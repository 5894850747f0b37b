//go:build unix

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/examples/internal/clitest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whatever the bytes and wherever the cuts: a log of short, long, empty and
// binary lines, with a last one that has no newline.
func TestReceivedIsWhatWasWritten(t *testing.T) {
	for _, tc := range []struct {
		cut  int
		size int
	}{{256, 20_000}, {400, 60_000}, {4_000, 400_000}, {50_000, 2_000_000}, {0, 2_000_000}} {
		t.Run(fmt.Sprint("cut ", tc.cut), func(t *testing.T) {
			t.Parallel()
			data := randomLog(uint64(tc.cut), tc.size)
			file := filepath.Join(t.TempDir(), "log")
			require.NoError(t, os.WriteFile(file, data, 0o600))
			var out, errs bytes.Buffer
			p, _ := newProgram()
			status := p.Execute(t.Context(), []string{
				"-cut", strconv.Itoa(tc.cut), "-seed", strconv.Itoa(tc.size), "-backoff", "1ms", "-backoff-limit", "5ms",
				"-script", "for i in 0 1 2 3; do tail -c +$((i*" + strconv.Itoa(tc.size/4) + "+1)) " + file + " | head -c " + strconv.Itoa(tc.size/4) + "; sleep 0.02; done",
			}, cli.Streams{Out: &out, Err: &errs})
			require.Zero(t, status, errs.String())
			assert.Equal(t, sha256.Sum256(data), sha256.Sum256(out.Bytes()))
			assert.Contains(t, errs.String(), fmt.Sprintf("sha256 %.8x, as written", sha256.Sum256(data)))
			if broken := strings.Count(errs.String(), "next attempt in"); tc.cut > 0 {
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
			b = append(b, bytes.Repeat([]byte("long "), r.IntN(4000))...)
		}
		b = append(b, '\n')
	}
	b = b[:size]
	b[size-1] = '.'
	return b
}

// What the program says is equal is compared: a byte that is lost on the way to
// the consumer is noticed.
func TestDifferenceIsNoticed(t *testing.T) {
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	defer func() { _ = log.Close() }()
	_, err = log.WriteString("ab")
	require.NoError(t, err)
	sum := sha256.Sum256([]byte("ac"))
	require.ErrorContains(t, compare(log, sum[:], new(follower)), "they are not the 2 that were written")
}

// together has stderr go where stdout goes, so that both can be waited for.
func together(cmd *exec.Cmd) { cmd.Stderr = cmd.Stdout }

// A connection is accepted and closed at once, and the next attempt is an hour
// away when the signal comes.
func TestSignalDuringAPause(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer func() { _ = ln.Close() }()
			p := clitest.Start(t, together, "tailresume", "-backoff", "1h", "-backoff-limit", "1h", ln.Addr().String())
			conn, err := ln.Accept()
			require.NoError(t, err)
			require.NoError(t, conn.Close())
			p.WaitFor("next attempt in")
			p.Signal(sig)
			assert.Equal(t, 128+int(sig), p.Wait())
			assert.Contains(t, p.Stdout(), "tailresume: stopped by signal: "+sig.String())
		})
	}
}

// What the demo writes for a test: who it is, and then anything, and no end.
const endless = `echo "group $$"; sleep 1000 & seq 1 1000000; sleep 1000`

// groupOf returns the process group that endless has told of.
func groupOf(t *testing.T, line string) int {
	t.Helper()
	id, err := strconv.Atoi(strings.TrimPrefix(line, "group "))
	require.NoError(t, err, line)
	return id
}

// assertNothingLeft fails the test if a process group or a log is left.
func assertNothingLeft(t *testing.T, group int, dir string) {
	t.Helper()
	assert.Empty(t, clitest.InGroup(t, group), "something of the script is left")
	logs, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	assert.Empty(t, logs)
}

// startEndless starts the demo with endless, and its log in a directory.
func startEndless(t *testing.T, change func(*exec.Cmd)) (p *clitest.Process, dir string) {
	dir = t.TempDir()
	return clitest.Start(t, func(cmd *exec.Cmd) {
		cmd.Env = append(os.Environ(), "TMPDIR="+dir)
		if change != nil {
			change(cmd)
		}
	}, "tailresume", "-quiet", "-cut", "5000", "-script", endless), dir
}

func TestSignalStopsTheScriptToo(t *testing.T) {
	p, dir := startEndless(t, nil)
	group := groupOf(t, p.WaitFor("group"))
	p.Signal(syscall.SIGINT)
	assert.Equal(t, 130, p.Wait())
	assertNothingLeft(t, group, dir)
}

// The reader of our output closes it after a line, as head -1 does.
func TestReaderThatHasGone(t *testing.T) {
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
	assert.Empty(t, p.Stderr())
	assertNothingLeft(t, groupOf(t, first), dir)
}

// A log that is shorter than what has come of it is another one.
func TestLogThatHasShrunk(t *testing.T) {
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	defer func() { _ = log.Close() }()
	_, err = log.WriteString("short\n")
	require.NoError(t, err)
	err = async.Scope(t.Context(), func(ctx context.Context) error {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		s := &server{file: log, over: func() bool { return true }, block: 1}
		async.Go(ctx, func(ctx context.Context) error { return s.serve(ctx, ln) }, async.Daemon())
		_, c := newProgram()
		f := c.follower(cli.Streams{})
		f.dial, f.offset, f.silence = dialer(ln.Addr().String(), time.Minute), 100, time.Minute
		return f.follow(ctx)
	})
	require.ErrorContains(t, err, "it is not the one you have begun with")
}
