//go:build linux

package etcdtest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/etcdkv"
	"github.com/ambit-go/ambit/kvqueue/internal/etcdtest"
)

// consumerEnv holds what a process is to do that is a consumer.
const consumerEnv = "KVQUEUE_CONSUMER"

// An order is what a consumer process is to do.
type order struct {
	Endpoints []string
	Queue     string
	TTL       time.Duration
	Workers   int
}

// consumer consumes if this process was started for that. It writes a line for whatever
// happens: "took", "lost" and "done" with the item, its fence and its attempt. Items that
// begin with "hold" are held until their contexts end. When its input ends it stops and
// writes "stats" and what it has counted.
func consumer() bool {
	text := os.Getenv(consumerEnv)
	if text == "" {
		return false
	}
	if err := consume(text); err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	return true
}

func consume(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	client, err := etcdtest.NewClient(o.Endpoints)
	if err != nil {
		return err
	}
	defer client.Close()
	q, err := kvqueue.Open(context.Background(), etcdkv.New(client), o.Queue, kvqueue.CompactedElsewhere(), kvqueue.TTL(o.TTL))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	var mu sync.Mutex // a line is written at once
	say := func(word string, i kvqueue.Item) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf("%s %s %d %d\n", word, i.Value, i.Fence, i.Attempt)
	}
	_ = q.Consume(ctx, o.Workers, 1, func(ctx context.Context, items []kvqueue.Item) error {
		i := items[0]
		say("took", i)
		if strings.HasPrefix(string(i.Value), "hold") {
			<-ctx.Done()
			say("lost", i)
			return nil
		}
		say("done", i)
		return nil
	})
	s := q.Stats()
	fmt.Printf("stats %d %d\n", s.Claimed, s.Conflicts)
	end, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return q.Close(end)
}

// A child is a consumer process.
type child struct {
	*exec.Cmd
	input io.Closer
	lines chan line // closed when it has ended
}

// A line is what a child has said, with the time at which this process has read it.
type line struct {
	word, value    string
	fence, attempt int64
	at             time.Time
}

// start starts a consumer. It is killed at the end of the test, if it runs still.
func (o order) start(t *testing.T) *child {
	t.Helper()
	text, err := json.Marshal(o)
	require.NoError(t, err)
	program, err := os.Executable()
	require.NoError(t, err)
	c := &child{Cmd: exec.Command(program), lines: make(chan line, 10000)}
	c.Env = append(os.Environ(), consumerEnv+"="+string(text))
	c.Stderr = os.Stderr
	c.input, err = c.StdinPipe()
	require.NoError(t, err)
	output, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	go func() {
		defer close(c.lines)
		for s := bufio.NewScanner(output); s.Scan(); {
			var l line
			_, _ = fmt.Sscan(s.Text(), &l.word, &l.value, &l.fence, &l.attempt)
			l.at = time.Now()
			c.lines <- l
		}
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		for range c.lines {
		}
		_ = c.Wait()
	})
	return c
}

// patience is how long a test waits for what must happen. It is long, as machines are
// busy.
const patience = 5 * time.Minute

// next returns the next line, which must come.
func (c *child) next(t *testing.T) line {
	t.Helper()
	select {
	case l, open := <-c.lines:
		require.True(t, open, "the consumer has ended")
		return l
	case <-time.After(patience):
		require.Fail(t, "the consumer says nothing")
		return line{}
	}
}

// heard returns a line, and what a consumer that was killed has said with its word since.
func (c *child) heard(first line, word string) (all []line) {
	all = append(all, first)
	for l := range c.lines {
		if l.word == word {
			all = append(all, l)
		}
	}
	return all
}

// says returns the next line with this word; others are skipped.
func (c *child) says(t *testing.T, word string) line {
	t.Helper()
	for {
		if l := c.next(t); l.word == word {
			return l
		}
	}
}
