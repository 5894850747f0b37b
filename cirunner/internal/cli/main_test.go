//go:build unix

package cli_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/cirunner/internal/cli"
	"github.com/ambit-go/ambit/cirunner/internal/clitest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, map[string]func(){
		"waiter":   waiter.Main,
		"stubborn": stubborn.Main,
		"counter":  counter.Main,
		"over":     over.Main,
	})
}

// waiter waits for a signal and says what it was stopped with.
var waiter = program(func(ctx context.Context, std cli.Streams) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		cli.FailOnSignal(ctx)
		fmt.Fprintln(std.Out, "ready")
		<-ctx.Done()
		fmt.Fprintln(std.Out, "cause:", context.Cause(ctx))
		return context.Cause(ctx)
	})
})

// stubborn does not look at its context.
var stubborn = program(func(ctx context.Context, std cli.Streams) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		cli.FailOnSignal(ctx)
		context.AfterFunc(ctx, func() { fmt.Fprintln(std.Out, "stopping") })
		fmt.Fprintln(std.Out, "ready")
		_, err := io.Copy(io.Discard, std.In) // which the test leaves open
		return err
	})
})

// counter counts up to three signals of two kinds.
var counter = program(func(ctx context.Context, std cli.Streams) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		n := 0 // not locked: the calls come one after the other
		cli.OnSignal(ctx, func(sig os.Signal) error {
			n++
			fmt.Fprintf(std.Out, "%d: %v\n", n, sig)
			if n == 3 {
				return errors.New("that was enough")
			}
			return nil
		}, syscall.SIGUSR1, syscall.SIGUSR2)
		fmt.Fprintln(std.Out, "ready")
		<-ctx.Done()
		return nil
	})
})

// over has left the scope in which it looked for signals.
var over = program(func(ctx context.Context, std cli.Streams) error {
	err := async.Scope(ctx, func(ctx context.Context) error {
		cli.FailOnSignal(ctx)
		return nil
	})
	fmt.Fprintln(std.Out, "over:", err)
	_, _ = io.Copy(io.Discard, std.In)
	return nil
})

func program(run func(context.Context, cli.Streams) error) *cli.Program {
	return &cli.Program{Name: "program", Run: func(ctx context.Context, _ []string, std cli.Streams) error {
		return run(ctx, std)
	}}
}
