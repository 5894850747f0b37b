package sqlitekv_test

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/sqlitekv"
)

func TestItemsOutliveTheProcess(t *testing.T) {
	path := newPath(t)
	for round := range 3 {
		s, err := sqlitekv.Open(path)
		require.NoError(t, err)
		q, err := kvqueue.Open(t.Context(), s, "q")
		require.NoError(t, err)
		for i := range 10 {
			_, err := q.Enqueue(t.Context(), fmt.Append(nil, round, i))
			require.NoError(t, err)
		}
		require.NoError(t, q.Close(t.Context()))
		require.NoError(t, s.Close())
		require.NoError(t, s.Close(), "twice")
	}
	got := drain(t, openQueue(t, openFile(t, path)))
	require.Len(t, got, 30)
	assert.Equal(t, "0 0", got[0])
	assert.Equal(t, "2 9", got[29])
}

// enqueueForEver is a process that adds numbers, several at a time and in order, and writes
// down what was acknowledged. It takes some, of which two workers hold what they have, and never ends.
func enqueueForEver(path string) error {
	ctx := context.Background()
	s, err := sqlitekv.Open(path)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf(format+"\n", args...)
	}
	q, err := kvqueue.Open(ctx, s, "q", kvqueue.TTL(time.Second), kvqueue.Observe(func(r kvqueue.Report) {
		if r.Kind == kvqueue.Lost {
			say("lost %s", r.Why)
		}
	}))
	if err != nil {
		return err
	}
	var holds atomic.Int64
	go func() {
		_ = q.Consume(ctx, 3, 2, func(ctx context.Context, items []kvqueue.Item) error {
			defer holds.Add(-1)
			if holds.Add(1) <= 2 {
				<-ctx.Done() // claimed until the process ends, unless it stands still for longer than its session lives
				return ctx.Err()
			}
			for _, i := range items {
				say("acking %s", i.Value)
			}
			if err := q.Ack(ctx, items...); err == nil {
				for _, i := range items {
					say("acked %s", i.Value)
				}
			}
			return nil
		})
	}()
	for n := range 4 {
		go func() {
			for i := 0; ; i++ {
				value := fmt.Sprintf("%d.%06d", n, i)
				if _, err := q.Enqueue(ctx, []byte(value)); err == nil {
					say("added %s", value)
				}
			}
		}()
	}
	select {}
}

func TestWhatWasAcknowledgedOutlivesAKill(t *testing.T) {
	path := newPath(t)
	for range 3 {
		said := untilKilled(t, path)
		s, err := sqlitekv.Open(path)
		require.NoError(t, err)
		q, err := kvqueue.Open(t.Context(), s, "q")
		require.NoError(t, err)
		n, err := q.Len(t.Context())
		require.NoError(t, err)
		left, again, last := map[string]bool{}, 0, map[byte]string{}
		for len(left) < n.Ready+n.Claimed { // what the dead process had claimed comes back when somebody asks for items
			require.NoError(t, q.Do(t.Context(), 1, func(_ context.Context, items []kvqueue.Item) error {
				value := string(items[0].Value)
				left[value] = true
				if items[0].Attempt > 1 {
					again++
					return nil
				}
				assert.Greater(t, value, last[value[0]], "the order of one producer")
				last[value[0]] = value
				return nil
			}))
		}
		if len(said["lost"]) == 0 { // else what was held may have been acknowledged by another worker just before the end
			assert.Positive(t, again, "what was claimed was tried twice")
		}
		for value := range said["added"] {
			assert.True(t, left[value] || said["acking"][value], "%s was lost", value)
		}
		for value := range said["acked"] {
			assert.False(t, left[value], "%s was acknowledged, and came again", value)
		}
		n, err = q.Len(t.Context())
		require.NoError(t, err)
		assert.Equal(t, kvqueue.Length{}, n)
		require.NoError(t, q.Close(t.Context()))
		require.NoError(t, s.Close())
	}
}

// untilKilled runs enqueueForEver, kills it in the middle, and returns what it had said: by
// the word, the values.
func untilKilled(t *testing.T, path string) map[string]map[string]bool {
	cmd := process(t, "enqueue", path)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	said := map[string]map[string]bool{"added": {}, "acking": {}, "acked": {}, "lost": {}}
	lines := bufio.NewScanner(out)
	for lines.Scan() { // to the end: what it wrote before it died is so
		what, value, _ := strings.Cut(lines.Text(), " ")
		require.Contains(t, said, what)
		if said[what][value] = true; len(said["acked"]) == 50 {
			require.NoError(t, cmd.Process.Kill())
		}
	}
	_ = cmd.Wait()
	require.GreaterOrEqual(t, len(said["acked"]), 50)
	return said
}
