//go:build unix

package lease_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/lease"
)

// stopped is how long the lease of the other process is.
const stopped = time.Second

// TestAProcessThatWasStoppedLearnsOfTheEndBeforeItGoesOn stops a process that holds a lease,
// lets it go on when the lease is over, and reads what the process has seen first.
func TestAProcessThatWasStoppedLearnsOfTheEndBeforeItGoesOn(t *testing.T) {
	for _, way := range []string{"Err", "Done", "Value", "body", "task"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^$")
			cmd.Env = append(os.Environ(), asStopped+"="+way)
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			lines := bufio.NewScanner(out)
			require.True(t, lines.Scan())
			require.Equal(t, "holds", lines.Text()) // its term has begun
			require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
			time.Sleep(stopped) // not less: so the term has ended, however long anything else takes
			require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
			require.True(t, lines.Scan())
			assert.Equal(t, "over: true", lines.Text())
			require.NoError(t, cmd.Wait())
		})
	}
}

// TestShutdownEndsNoRenewals has a process of its own, for it shuts down its root. Whoever was
// told to stop may have something to give back.
func TestShutdownEndsNoRenewals(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), asStopped+"=shutdown")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err)
	assert.Equal(t, "renewed: true, holds: true\n", string(out))
}

// beShutDown is a process that is shut down, and holds a lease.
func beShutDown() {
	renewed := make(chan error)
	k := lease.NewKeeper(context.Background(), func(ctx context.Context, _ batch) ([]error, error) {
		renewed <- ctx.Err()
		return nil, nil
	}, lease.Unscoped())
	l, err := k.Keep("k", lease.Term{Granted: k.Now(), Length: time.Hour}) // it is held however busy the machine is
	if err != nil {
		panic(err)
	}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_ = async.Shutdown(now)
	k.RenewNow()
	fmt.Printf("renewed: %v, holds: %v\n", <-renewed == nil, l.Err() == nil)
}

// beStopped is the other process. Its renewals have no success.
func beStopped() {
	if os.Getenv(asStopped) == "shutdown" {
		beShutDown()
		return
	}
	runtime.GOMAXPROCS(1) // no other goroutine finds out before the one that asks
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		k := lease.NewKeeper(ctx, func(context.Context, batch) ([]error, error) { return nil, errStore })
		for {
			term := lease.Term{Granted: k.Now(), Length: stopped}
			l, err := k.Keep("k", term)
			if err == nil {
				err = ask(ctx, os.Getenv(asStopped), l, func() bool { return k.Now() >= term.Believed() })
			}
			if !errors.Is(err, lease.ErrOver) { // else the machine was so busy that the term was over before it was asked about
				return err
			}
		}
	})
	if err != nil {
		fmt.Println(err)
	}
}

// ask asks a context of the lease again and again in the given way. It returns an error if it has not asked.
func ask(ctx context.Context, way string, l *lease.Lease, over func() bool) (err error) {
	asked := false
	defer func() {
		if asked {
			err = nil
		}
	}()
	on, stop := l.Context(ctx)
	defer stop()
	below, cancel := context.WithCancel(on)
	defer cancel()
	switch way {
	case "Err":
		watch(on, over, func() bool { return on.Err() != nil })
	case "Done":
		watch(on, over, func() bool { return isClosed(on.Done()) })
	case "Value":
		watch(below, over, func() bool { _ = below.Value("k"); return below.Err() != nil })
	case "body":
		return l.Run(ctx, func(ctx context.Context) error {
			asked = true
			_ = ctx.Done() // so that the scope has a standard context
			watch(ctx, over, func() bool { return ctx.Err() != nil })
			return nil
		})
	case "task":
		return l.Run(ctx, func(ctx context.Context) error {
			asked = true
			_, err := async.Start(ctx, func(ctx context.Context) error {
				watch(ctx, over, func() bool { return lease.Check(ctx) != nil })
				return nil
			}).Join(ctx)
			return err
		})
	}
	return nil
}

// watch asks until the time is over or the context is done, and prints which came first.
func watch(ctx context.Context, over, done func() bool) {
	fmt.Println("holds")
	for {
		late := over()
		switch {
		case done():
			fmt.Println("over:", errors.Is(context.Cause(ctx), lease.ErrOver))
			return
		case late:
			fmt.Println("goes on after the end")
			return
		}
	}
}
