//go:build unix

package cookbook

import (
	"bytes"
	"context"
	"runtime"
	"strconv"
	"strings"
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

	result.Pid = 0
	for limit := 50 * time.Millisecond; result.Pid == 0; limit *= 2 { // else it was over before the script was started
		result, err = RunScript(asynctest.Context(t), "sleep 600", &log, limit, time.Minute)
	}
	var late *async.TimeoutError
	require.ErrorAs(t, err, &late)
	require.Equal(t, syscall.SIGTERM, result.Signal)
}

func TestAScriptLeavesNobodyBehindThatIgnoresTERM(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("looks into /proc")
	}
	ctx, cancel := context.WithCancelCause(asynctest.Context(t))
	log := newSign()
	go func() {
		<-log.ready
		cancel(errUser)
	}()
	script := "trap 'exit 7' TERM; (trap '' TERM; echo $BASHPID" + forever + ") & wait"
	result, err := RunScript(ctx, script, log, time.Hour, 2*time.Second)
	require.ErrorIs(t, err, errUser)
	require.Equal(t, 7, result.Code)
	require.True(t, result.Killed)
	pid, err := strconv.Atoi(strings.TrimSpace(log.text.String()))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !alive(pid) }, time.Minute, time.Millisecond)
}
