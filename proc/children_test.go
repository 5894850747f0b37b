//go:build unix

package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/clitest"
)

// Commands that are started by others, beside ours, are theirs to wait for.
func TestASiblingOfOsExecIsNotReaped(t *testing.T) {
	const each = 40
	require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error {
			for range each {
				c := bash("sleep 600 & exit 0")
				c.Linger = -1
				if _, err := Run(ctx, c); err != nil {
					return err
				}
			}
			return nil
		})
		async.Go(ctx, func(context.Context) error {
			for i := range each {
				cmd := exec.Command("bash", "-c", fmt.Sprintf("exit %d", i))
				_ = cmd.Run()
				if code := cmd.ProcessState.ExitCode(); code != i {
					return fmt.Errorf("exit status %d of the sibling, want %d", code, i)
				}
			}
			return nil
		})
		return nil
	}))
}

// mine returns what of this process a run could leave: descriptors, and children
// that are dead and not waited for, or live. It waits for tasks that were left to end by
// themselves, here or by a test before: they close files.
func mine(t *testing.T) (files []string, children int) {
	t.Helper()
	r, w, err := os.Pipe() // with the first one of the process the runtime opens files that stay open
	require.NoError(t, err)
	require.NoError(t, errors.Join(r.Close(), w.Close()))
	clitest.Eventually(t, "the end of the tasks in the root", func() bool { return len(asynctest.Live(context.Background())) == 0 })
	dir := "/dev/fd"
	if runtime.GOOS == "linux" {
		dir = "/proc/self/fd"
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		target, _ := os.Readlink(filepath.Join(dir, e.Name()))
		files = append(files, e.Name()+" "+target)
	}
	return files, len(clitest.Children(t))
}

func TestAThousandCommandsLeaveNothing(t *testing.T) {
	n := 1000
	if testing.Short() {
		n = 100
	}
	ctx := asynctest.Context(t)
	run := func(i int) {
		out := newSign()
		c := Command{Args: []string{"sh", "-c", fmt.Sprintf("read -r line; echo $line; echo err >&2; exit %d", i%2)}}
		c.Stdin, c.Stdout = strings.NewReader("in\n"), out
		if i%3 > 0 {
			c.Stderr = writerFunc(func(p []byte) (int, error) { return len(p), nil })
		}
		if i%100 == 99 {
			c.Args = []string{"/no/such/program"}
		}
		result, err := Run(ctx, c)
		if i%100 != 99 {
			assert.Equal(t, i%2, result.Code)
			assert.Equal(t, i%2 == 0, err == nil, err)
			assert.Equal(t, "in\n", out.String())
		}
	}
	run(0)
	files, children := mine(t)
	goroutines := runtime.NumGoroutine()
	require.NoError(t, async.ForEach(ctx, func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}, func(_ context.Context, i int) error { run(i); return nil }, async.Limit(4)))
	clitest.Eventually(t, "the end of the goroutines", func() bool { return runtime.NumGoroutine() <= goroutines })
	filesAfter, childrenAfter := mine(t)
	assert.Len(t, filesAfter, len(files), "before: %v\nafter: %v", files, filesAfter)
	assert.Equal(t, children, childrenAfter, "children")
	assert.Empty(t, asynctest.Live(context.Background()), "tasks in the root")
}

func init() { helpers["unwaited"] = unwaited }

// unwaited runs a command where the system reaps children itself.
func unwaited() {
	signal.Ignore(syscall.SIGCHLD)
	result, err := Run(context.Background(), Command{Name: "step", Args: []string{"sh", "-c", "exit 3"}})
	fmt.Printf("%d %v %s, %v", result.Code, result.State, result.Outcome(), err)
}

// The exit status is lost when somebody else takes it, and Run says so.
func TestACommandThatAnotherHasReapedIsAnError(t *testing.T) {
	out, err := exec.Command(helper(t, "unwaited")).CombinedOutput()
	require.NoError(t, err)
	if runtime.GOOS == "linux" {
		assert.Regexp(t, `^-1 <nil> exit status unknown, step: wait\w*: no child processes$`, string(out))
	}
}
