package cookbook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async/asynctest"
)

// TestEveryLineComesOnce reads a log that grows over connections that break
// anywhere, and compares what has come with what was written.
func TestEveryLineComesOnce(t *testing.T) {
	ctx := asynctest.Context(t)
	var text strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&text, "%d %s\n", i, strings.Repeat("x", rand.IntN(60)))
	}
	text.WriteString("the last line has no newline")
	log := text.String()

	var connections atomic.Int32
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch n := connections.Add(1); {
		case n%5 == 1:
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case n%7 == 1:
			panic(http.ErrAbortHandler)
		}
		from, err := strconv.Atoi(r.FormValue("offset"))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		end := min(from+rand.IntN(8000), len(log))
		for at := from; at < end; {
			next := min(at+1+rand.IntN(1000), end)
			_, _ = io.WriteString(w, log[at:next])
			_ = http.NewResponseController(w).Flush()
			at = next
		}
		if end < len(log) {
			panic(http.ErrAbortHandler) // cuts the connection
		}
	}))
	defer served.Close()
	defer served.Client().CloseIdleConnections()

	var got []string
	require.NoError(t, FollowLog(ctx, served.Client(), served.URL, func(line string) error {
		got = append(got, line)
		return nil
	}))
	require.Equal(t, strings.SplitAfter(log, "\n"), got)
	require.Greater(t, connections.Load(), int32(10))
}

func TestAConsumerThatFailsEndsTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		client := server(func(_ int, w http.ResponseWriter, _ *http.Request) error {
			_, err := io.WriteString(w, "one\ntwo\nthree\n")
			return err
		}).client()
		err := FollowLog(asynctest.Context(t), client, "http://cluster/log", func(line string) error {
			if lines = append(lines, line); len(lines) == 2 {
				return errStopped
			}
			return nil
		})
		require.ErrorIs(t, err, errStopped)
		require.Equal(t, []string{"one\n", "two\n"}, lines)
	})
}

func TestAServerThatNeverAnswersIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		client := server(func(n int, _ http.ResponseWriter, _ *http.Request) error {
			tries = n
			return errNoAnswer
		}).client()
		err := FollowLog(asynctest.Context(t), client, "http://cluster/log", nil)
		require.ErrorIs(t, err, errNoAnswer)
		require.Equal(t, 10, tries)
	})
}

func TestACancelledStreamDoesNotSitOutThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(asynctest.Context(t))
		start := time.Now()
		time.AfterFunc(time.Second, func() { cancel(errStopped) })
		client := server(func(_ int, w http.ResponseWriter, _ *http.Request) error { return errors.New("down") }).client()
		err := FollowLog(ctx, client, "http://cluster/log", nil)
		require.ErrorIs(t, err, errStopped)
		require.Equal(t, time.Second, time.Since(start))
	})
}
