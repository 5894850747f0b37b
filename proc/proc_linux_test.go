package proc

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async/asynctest"
)

func init() {
	helpers["tracee"] = tracee
	helpers["tracer"] = tracer
}

// Values of linux/prctl.h and linux/ptrace.h.
const (
	prSetChildSubreaper = 36
	prSetPtracer        = 0x59616d61
	ptraceSeize         = 0x4206
)

func prctl(option, argument uintptr) error {
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, option, argument, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// tracee lets anybody trace it, and waits.
func tracee() {
	_ = prctl(prSetPtracer, ^uintptr(0)) // anybody
	fmt.Println("ready")
	for {
		_ = syscall.Pause()
	}
}

// tracer traces a process until its stdin ends, and pays no attention to it.
func tracer() {
	runtime.LockOSThread() // it is the thread that traces
	pid, _ := strconv.Atoi(os.Args[1])
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PTRACE, ptraceSeize, uintptr(pid), 0, 0, 0, 0)
	fmt.Println("traced:", errno == 0)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// A process whose tracer does not look at it is not reaped when it is killed. So
// it looks to its parent as one does that the system cannot end, because it
// waits for a disk, say: that cannot be had on demand.
func TestACommandThatSurvivesKILLIsGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	var pid atomic.Int64
	var answer string
	out := newSign()
	trace := exec.Command(helper(t, "tracer"))
	release, err := trace.StdinPipe()
	require.NoError(t, err)
	answers, err := trace.StdoutPipe()
	require.NoError(t, err)
	go func() {
		defer cancel(errUser)
		<-out.ready // before, the tracee may be stopped by a signal of its own
		trace.Args = append(trace.Args, strconv.FormatInt(pid.Load(), 10))
		if assert.NoError(t, trace.Start()) {
			_, err := fmt.Fscanf(answers, "traced: %s\n", &answer)
			assert.NoError(t, err)
		}
	}()
	result, err := Run(ctx, Command{
		Args:    []string{helper(t, "tracee")},
		Stdout:  out,
		Grace:   -1,
		GiveUp:  2 * time.Second, // it takes as long; what is in the pipe is read in no time, but may have to wait for it
		Started: func(id int) { pid.Store(int64(id)) },
	})
	require.NoError(t, release.Close())
	require.NoError(t, trace.Wait())
	if answer != "true" {
		t.Skip("processes cannot be traced here: ", answer)
	}
	require.Eventually(t, func() bool { return syscall.Kill(result.Pid, 0) == syscall.ESRCH }, hang, time.Millisecond)

	assert.True(t, result.Survived)
	assert.Nil(t, result.State)
	assert.Equal(t, -1, result.Status())
	assert.ErrorIs(t, err, errUser)
	assert.EqualError(t, err, "tracee: cannot be killed, stopped: cancelled by the user")
	assert.Contains(t, result.Notes(), "not all of its processes have ended on KILL")
}

func TestWhatIsStoppedHearsTERM(t *testing.T) {
	ctx, cancel := context.WithCancelCause(asynctest.Context(t))
	c := bash(`trap 'exit 7' TERM; sleep 600 & kill -STOP $$; wait`)
	waited := make(chan struct{})
	c.Started = func(pid int) {
		go func() {
			defer close(waited)
			defer cancel(errUser)
			assert.Eventually(t, func() bool {
				stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
				state, _, ok := parseStat(stat)
				return ok && state == 'T'
			}, hang, time.Millisecond)
		}()
	}
	result, err := Run(ctx, c)
	<-waited
	assert.Equal(t, 7, result.Code)
	assert.ErrorIs(t, err, errUser)
}

// In a container the first process often reaps nobody. Here it is the test that
// orphans go to, and that does not.
func TestTheDeadThatNobodyReapsAreNotWaitedFor(t *testing.T) {
	require.NoError(t, prctl(prSetChildSubreaper, 1))
	defer func() { require.NoError(t, prctl(prSetChildSubreaper, 0)) }()
	c := bash("sleep 600 & exit 0")
	c.Linger = 50 * time.Millisecond
	result, err := Run(asynctest.Context(t), c) // would give up after a minute
	require.NoError(t, err)
	assert.False(t, result.Survived)
	assert.False(t, result.Killed)

	assert.NoError(t, syscall.Kill(-result.Pid, 0), "the dead are there")
	_, err = syscall.Wait4(-result.Pid, nil, 0, nil)
	assert.NoError(t, err)
}

func TestParseStat(t *testing.T) {
	for _, test := range []struct {
		stat  string
		state byte
		group int
		ok    bool
	}{
		{"12 (bash) S 1 12 12 0 -1", 'S', 12, true},
		{"13 (a) Z 9 9) Z 1 12 12 0 -1", 'Z', 12, true},
		{"13 (bash)", 0, 0, false},
		{"", 0, 0, false},
		{"13 (bash) S 1 x 12", 'S', 0, false},
	} {
		state, group, ok := parseStat([]byte(test.stat))
		assert.Equal(t, []any{test.state, test.group, test.ok}, []any{state, group, ok}, test.stat)
	}
}
