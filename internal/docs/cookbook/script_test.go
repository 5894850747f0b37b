//go:build unix

package cookbook

import (
	"bytes"
	"context"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func TestAScriptTellsHowItHasEnded(t *testing.T) {
	var log bytes.Buffer
	result, err := RunScript(asynctest.Context(t), "echo out; echo err >&2; exit 3", &log, time.Minute, time.Minute)
	require.Error(t, err)
	require.Equal(t, 3, result.Code)
	require.NoError(t, result.Cause)
	require.Equal(t, "out\nerr\n", log.String(), "in order")

	log.Reset()
	for limit := 50 * time.Millisecond; log.Len() == 0; limit *= 2 { // until it has begun in time
		result, err = RunScript(asynctest.Context(t), "echo begins; exec sleep 600", &log, limit, time.Minute)
		var late *async.TimeoutError
		require.ErrorAs(t, err, &late)
	}
	require.Equal(t, syscall.SIGTERM, result.Signal)
}

func TestAScriptLeavesNobodyBehindThatIgnoresTERM(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("looks into /proc")
	}
	inGrace(t, 7, func(grace time.Duration) int {
		ctx, cancel := context.WithCancelCause(asynctest.Context(t))
		log := newSign()
		go func() {
			<-log.ready
			cancel(errUser)
		}()
		result, err := RunScript(ctx, leavesOne, log, time.Hour, grace)
		require.ErrorIs(t, err, errUser)
		require.True(t, result.Killed)
		isGone(t, log.text.String())
		return result.Code
	})
}
