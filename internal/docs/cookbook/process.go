//go:build unix

package cookbook

import (
	"context"
	"os/exec"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/async"
)

// RunProcess runs cmd in a process group of its own and returns its exit code,
// -1 if a signal has ended it. If it takes longer than limit, or when ctx is
// done, the group gets TERM, and what is left of it after grace gets KILL. The
// error then tells both the cause and how the process has ended.
func RunProcess(ctx context.Context, cmd *exec.Cmd, limit, grace time.Duration) (code int, err error) {
	const dying = 10 * time.Second // for the kernel to end what was killed
	if ctx.Err() != nil {
		return -1, context.Cause(ctx)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = grace + dying // if somebody outside the group holds the output open
	started := make(chan struct{})
	process := async.Execute(ctx, func(ctx context.Context) (int, error) {
		err := cmd.Start()
		close(started)
		if err != nil {
			return -1, err
		}
		if err = cmd.Wait(); err == nil {
			err = context.Cause(ctx) // it was told to stop and exits with 0: say why
		}
		return cmd.ProcessState.ExitCode(), err
	},
		async.Name(cmd.Path),
		async.OnAbort(func(ctx context.Context, _ error) error {
			if <-started; cmd.Process == nil {
				return nil // it could not be started
			}
			return stopGroup(ctx, cmd.Process.Pid, grace)
		}),
		async.HookTimeout(grace+dying),
		async.Grace(grace+dying))
	code, err = process.Await(ctx, limit)
	if process.IsRunning() {
		code = -1 // not even KILL has helped
	}
	return code, err
}

// stopGroup asks a process group to end and kills it if it has not after grace.
func stopGroup(ctx context.Context, group int, grace time.Duration) error {
	_ = syscall.Kill(-group, syscall.SIGTERM)
	_, err := async.Poll(ctx, async.Every(10*time.Millisecond), func(context.Context) (struct{}, bool, error) {
		empty := syscall.Kill(-group, 0) != nil
		return struct{}{}, empty, nil
	}).Await(ctx, max(grace, 1)) // 0 would set no limit
	if err != nil {
		_ = syscall.Kill(-group, syscall.SIGKILL) // fails if the last one has ended meanwhile
	}
	return nil
}
