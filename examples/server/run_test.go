//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/clitest"
)

func TestMain(m *testing.M) {
	testscript.Main(clitest.LeakChecked(m), map[string]func(){"server": main})
}

// TestScripts runs the program as its users do.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Cmds: clitest.Commands[*testscript.TestScript](), Setup: clitest.Setup[*testscript.Env]})
}

// A run is the program as a process, with clients.
type run struct {
	*clitest.Process
	t       *testing.T
	url     string
	journal string
	client  *http.Client
}

func start(t *testing.T, args ...string) *run { return startWith(t, nil, args...) }

// startWith is start with a change to the command, which may be nil.
func startWith(t *testing.T, change func(*exec.Cmd), args ...string) *run {
	r := &run{t: t, journal: filepath.Join(t.TempDir(), "journal")}
	args = append([]string{"-addr", "127.0.0.1:0", "-journal", r.journal}, args...)
	r.Process = clitest.Start(t, change, "server", args...)
	const words = "listening on "
	r.WaitForStderr(words)
	clitest.Eventually(t, "the whole line", func() bool {
		_, rest, _ := strings.Cut(r.Stderr(), words)
		line, _, whole := strings.Cut(rest, "\n")
		r.url = line
		return whole
	})
	transport := &http.Transport{MaxIdleConnsPerHost: 100, ExpectContinueTimeout: 1 << 40}
	r.client = &http.Client{Transport: transport}
	t.Cleanup(transport.CloseIdleConnections)
	clitest.Eventually(t, "ready", func() bool { return r.health() == http.StatusOK })
	return r
}

// health returns the status of the health handler, 0 if there is no answer.
func (r *run) health() int {
	answer, err := r.client.Get(r.url + "/health")
	if err != nil {
		return 0
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

// takesNoMore waits until connections are refused: the drain has begun.
func (r *run) takesNoMore() {
	r.t.Helper()
	addr := strings.TrimPrefix(r.url, "http://")
	clitest.Eventually(r.t, "refused", func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
}

// order makes an order and returns its number, and the status of the answer.
func (r *run) order(text io.Reader, trace *httptrace.ClientTrace) (number int64, status int, err error) {
	ctx := context.Background()
	if trace != nil {
		ctx = httptrace.WithClientTrace(ctx, trace)
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/orders", text)
	if err != nil {
		return 0, 0, err
	}
	if trace != nil {
		q.Header.Set("Expect", "100-continue")
	}
	answer, err := r.client.Do(q)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	said, err := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusAccepted {
		return 0, answer.StatusCode, err
	}
	_, err = fmt.Sscanf(string(said), "accepted: %d", &number)
	return number, answer.StatusCode, err
}

// written returns the orders in the journal, each of which is there once.
func (r *run) written() map[int64]string {
	r.t.Helper()
	all, err := os.ReadFile(r.journal)
	require.NoError(r.t, err)
	orders := map[int64]string{}
	for line := range strings.Lines(string(all)) {
		number, quoted, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		n, err := strconv.ParseInt(number, 10, 64)
		require.NoError(r.t, err, line)
		text, err := strconv.Unquote(quoted)
		require.NoError(r.t, err, line)
		require.NotContains(r.t, orders, n)
		orders[n] = text
	}
	return orders
}

// Clients order as fast as they can, the worker panics at each fiftieth attempt,
// and the program is told to stop in the midst of that. Each order that was answered
// with 202 is in the journal, once, as it was made.
func TestUnderLoadNothingThatWasAcceptedIsLost(t *testing.T) {
	clitest.Signals(t, func(t *testing.T, sig syscall.Signal, _ int) {
		r := start(t, "-panics", "50")
		var mu sync.Mutex
		accepted := map[int64]string{}
		enough := make(chan struct{})
		var clients sync.WaitGroup
		for c := range 8 {
			clients.Go(func() {
				for i := 0; ; i++ {
					text := fmt.Sprintf("client %d, order %d", c, i)
					number, status, err := r.order(strings.NewReader(text), nil)
					if err != nil {
						return // the connection is gone: nothing was answered
					}
					if status == http.StatusServiceUnavailable {
						continue // too much to do
					}
					assert.Equal(t, http.StatusAccepted, status)
					mu.Lock()
					accepted[number] = text
					if len(accepted) == 1000 {
						close(enough)
					}
					mu.Unlock()
				}
			})
		}
		<-enough
		r.Signal(sig)
		clients.Wait()
		require.Equal(t, 0, r.Wait(), r.Stderr())

		written := r.written()
		for number, text := range accepted {
			require.Equal(t, text, written[number], "order %d", number)
		}
		// An entry that was accepted and whose answer was cut off with its connection is there, too.
		assert.Contains(t, r.Stderr(), fmt.Sprintf("%d accepted, %d written", len(written), len(written)))
		assert.Contains(t, r.Stderr(), "the worker has panicked, and is started again")
	})
}

// A slow order is one whose text comes when the client is told to send it.
type slow struct {
	begun  chan struct{} // closed when the handler has begun to read
	finish io.Closer
	status chan int // 0: no answer
	number atomic.Int64
}

func (r *run) slow() *slow {
	text, w := io.Pipe()
	s := &slow{begun: make(chan struct{}), finish: w, status: make(chan int, 1)}
	go func() {
		number, status, _ := r.order(text, &httptrace.ClientTrace{Got100Continue: func() { close(s.begun) }})
		s.number.Store(number)
		s.status <- status
	}()
	<-s.begun
	_, err := io.WriteString(w, "slow")
	require.NoError(r.t, err)
	return s
}

// Orders that a client has begun to send when the signal comes are taken to their
// end, accepted and written.
func TestRequestsThatHaveBegunAreDone(t *testing.T) {
	r := start(t)
	_, status, err := r.order(strings.NewReader(strings.Repeat("x", longest+1)), nil)
	require.NoError(t, err)
	assert.Equal(t, http.StatusBadRequest, status, "it is too long")
	var all []*slow
	for range 20 {
		all = append(all, r.slow())
	}
	r.Signal(syscall.SIGTERM)
	r.takesNoMore()
	for _, s := range all {
		require.NoError(t, s.finish.Close())
	}
	numbers := map[int64]string{}
	for _, s := range all {
		assert.Equal(t, http.StatusAccepted, <-s.status)
		numbers[s.number.Load()] = "slow"
	}
	require.Equal(t, 0, r.Wait(), r.Stderr())
	assert.Equal(t, numbers, r.written())
}

// The second signal drops the request that holds the drain up, which was not
// accepted. An entry that was accepted is written all the same.
func TestTheSecondSignalCutsTheDrainShort(t *testing.T) {
	clitest.Signals(t, func(t *testing.T, sig syscall.Signal, status int) {
		r := start(t, "-grace", "1h", "-panics", "0")
		hangs := r.slow()
		accepted := map[int64]string{}
		for i := range 10 {
			text := strconv.Itoa(i)
			number, status, err := r.order(strings.NewReader(text), nil)
			require.NoError(t, err)
			require.Equal(t, http.StatusAccepted, status)
			accepted[number] = text
		}
		r.Signal(sig)
		r.takesNoMore()
		r.Signal(sig)
		require.Equal(t, status, r.Wait(), r.Stderr())
		_ = hangs.finish.Close() // the client writes to its end before it looks at the connection
		assert.NotEqual(t, http.StatusAccepted, <-hangs.status)
		for number, text := range r.written() {
			assert.Equal(t, text, accepted[number])
			delete(accepted, number)
		}
		if len(accepted) > 0 { // there was no time for them: the program says so
			assert.Contains(t, r.Stderr(), fmt.Sprintf("%d accepted orders were not done", len(accepted)))
		}
	})
}

// A load balancer is told before orders are refused.
func TestDuringTheDelayItServesAndSaysThatItIsNotReady(t *testing.T) {
	r := start(t, "-delay", "1h")
	r.Signal(syscall.SIGTERM)
	clitest.Eventually(t, "not ready", func() bool { return r.health() == http.StatusServiceUnavailable })
	number, status, err := r.order(strings.NewReader("late"), nil)
	require.NoError(t, err)
	assert.Equal(t, http.StatusAccepted, status)
	r.Signal(syscall.SIGTERM) // nobody waits for an hour
	assert.Equal(t, 143, r.Wait(), r.Stderr())
	if written := r.written(); len(written) > 0 {
		assert.Equal(t, map[int64]string{number: "late"}, written)
	} else {
		assert.Contains(t, r.Stderr(), "1 accepted orders were not done")
	}
}

// A journal that cannot be written ends the program at once, which says how much is
// lost: all that was accepted.
func TestAFullDiskIsNoSilence(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no /dev/full here")
	}
	r := start(t, "-journal", "/dev/full", "-grace", "1h")
	var accepted atomic.Int64
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for {
				_, status, err := r.order(strings.NewReader("lost"), nil)
				switch {
				case err != nil:
					return
				case status == http.StatusAccepted:
					accepted.Add(1)
				}
			}
		})
	}
	clients.Wait()
	assert.Equal(t, 1, r.Wait(), r.Stderr())
	assert.Contains(t, r.Stderr(), "service journal: ")
	assert.Contains(t, r.Stderr(), "lost: write /dev/full: no space left on device")
	assert.NotContains(t, r.Stderr(), "queue closed", "the worker has said how many are left")
	count := func(words string) int64 {
		m := regexp.MustCompile(words).FindStringSubmatch(r.Stderr())
		if m == nil {
			return 0
		}
		n, err := strconv.ParseInt(m[1], 10, 64)
		require.NoError(t, err)
		return n
	}
	all := count(`(\d+) accepted, 0 written`)
	assert.GreaterOrEqual(t, all, accepted.Load(), r.Stderr())
	assert.Equal(t, all, count(`batch: (\d+) items? lost`)+count(`(\d+) accepted orders were not done`), r.Stderr())
}

// The journal is the standard output, and what reads that has gone, as in "server |
// head": an order that was accepted is lost, and the program says so and ends with 1.
func TestAJournalThatNobodyReadsIsNoSilence(t *testing.T) {
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	r := startWith(t, func(cmd *exec.Cmd) { cmd.Stdout = writer }, "-journal", "", "-grace", "1h")
	require.NoError(t, writer.Close())
	require.NoError(t, reader.Close())
	_, status, err := r.order(strings.NewReader("lost"), nil)
	require.NoError(t, err)
	assert.Equal(t, http.StatusAccepted, status)
	assert.Equal(t, 1, r.Wait(), r.Stderr())
	assert.Contains(t, r.Stderr(), "1 accepted, 0 written")
	assert.Contains(t, r.Stderr(), "batch: 1 item lost: write /dev/stdout: broken pipe")
}
