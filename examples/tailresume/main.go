//go:build unix

// Tailresume follows a log over connections that break: nothing is lost, nothing
// comes twice, and the last line counts even if it has no newline.
//
// Without arguments it shows that: a bash script writes a log, a server on the
// loopback interface serves it and cuts its connections at random places, and
// tailresume follows it to the end and compares checksums. With an address it
// follows the log that is served there.
//
//	go run ./examples/tailresume
//	go run ./examples/tailresume -cut 5000 -script 'seq 1 100000'
//	go run ./examples/tailresume 127.0.0.1:7000
//
// It is meant to be copied: follow.go is the follower, frame.go what is said
// over a connection, serve.go the server, cut.go breaks connections, demo.go
// writes a log and compares, main.go makes a program of it.
//
// It exits with 0 when the log has been received as a whole, 1 if it has not, 2
// when the arguments are wrong, 130 and 143 when stopped by a signal, and 141 if
// whoever reads its output has gone. (go run hides the status: it prints it and
// exits with 1.)
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
)

func main() {
	p, _ := newProgram()
	p.Main()
}

// A config is what the flags say.
type config struct {
	script   string
	cut      int
	seed     uint64
	attempts int
	backoff  time.Duration
	limit    time.Duration
	silence  time.Duration
	quiet    bool
}

const defaultScript = `for i in {1..60}; do
	printf 'line %02d of a log that grows while it is read\n' $i
	sleep 0.03
done
printf 'the last line, which has no newline'`

func newProgram() (*cli.Program, *config) {
	c := new(config)
	return &cli.Program{
		Name:     "tailresume",
		Synopsis: "[flags] [address]",
		About: `Tailresume follows a log over connections that break and prints every byte of it
once. Without an address it starts a script that writes a log, and a server that
cuts its connections, and follows that. What becomes of the connections is told
on stderr.`,
		Exit:  "0 received as a whole, 1 not, 2 wrong arguments, 130 and 143 stopped by a signal, 141 nobody reads the output",
		Flags: c.define,
		Run:   c.run,
	}, c
}

func (c *config) define(flags *flag.FlagSet) {
	flags.StringVar(&c.script, "script", defaultScript, "bash `script` that writes the log")
	flags.IntVar(&c.cut, "cut", 400, "cut connections after so many `bytes`, on average; 0 for never")
	flags.Uint64Var(&c.seed, "seed", 1, "`number` that decides where connections are cut")
	flags.IntVar(&c.attempts, "attempts", 20, "give up after `n` connections in a row that bring nothing")
	flags.DurationVar(&c.backoff, "backoff", 10*time.Millisecond, "the first `pause` between connections; it doubles until one brings something")
	flags.DurationVar(&c.limit, "backoff-limit", time.Second, "the longest `pause` between connections")
	flags.DurationVar(&c.silence, "silence", 10*time.Second, "take a connection for broken when nothing has come for this `time`")
	flags.BoolVar(&c.quiet, "quiet", false, "do not tell what becomes of the connections")
}

func (c *config) check(args []string) error {
	switch {
	case len(args) > 1:
		return cli.Usagef("one address is enough; unexpected %q", args[1])
	case c.cut != 0 && c.cut < 256:
		return cli.Usagef("-cut must be 0 or at least 256, or no connection would live long enough to bring something")
	case c.attempts < 1:
		return cli.Usagef("-attempts must be 1 or more")
	case c.backoff <= 0 || c.limit < c.backoff:
		return cli.Usagef("-backoff must be more than 0 and at most -backoff-limit")
	case c.silence <= 0:
		return cli.Usagef("-silence must be more than 0")
	}
	if len(args) == 1 {
		if _, _, err := net.SplitHostPort(args[0]); err != nil {
			return cli.Usagef("%q is not an address such as 127.0.0.1:7000", args[0])
		}
	}
	return nil
}

// run follows the log, in one scope that holds whatever belongs to it: when run
// returns, nothing is left of it.
func (c *config) run(ctx context.Context, args []string, std cli.Streams) error {
	if err := c.check(args); err != nil {
		return err
	}
	cli.FailWritesToClosedPipes()
	err := async.Scope(ctx, func(ctx context.Context) error {
		cli.FailOnSignal(ctx)
		f := c.follower(std)
		if len(args) == 1 {
			f.dial = dialer(args[0], c.silence)
			return takeAll(ctx, f)
		}
		return c.demo(ctx, f)
	}, async.Name("tailresume"))
	if errors.Is(err, syscall.EPIPE) {
		return &cli.ExitError{Code: cli.StatusPipe} // as cat would, and without a word
	}
	return cli.SignalAlone(err)
}

// takeAll follows the log. Whoever reads our output may have stopped reading
// without going away; a write to a pipe looks at no context, so when told to
// stop it is waited for only so long.
func takeAll(ctx context.Context, f *follower) error {
	const most = time.Second
	return async.Scope(ctx, func(ctx context.Context) error {
		_, err := async.Start(ctx, f.follow, async.Name("follow")).Await(ctx, 0)
		return err
	}, async.DetachAfter(most))
}

func (c *config) follower(std cli.Streams) *follower {
	report := func(format string, args ...any) {
		fmt.Fprintf(std.Err, "tailresume: "+format+"\n", args...)
	}
	if c.quiet {
		report = func(string, ...any) {}
	}
	return &follower{
		emit:     func(p []byte) error { return write(std.Out, p) },
		report:   report,
		pause:    async.Jitter(0.2, async.Backoff(c.backoff, c.limit)),
		attempts: c.attempts,
		silence:  c.silence,
	}
}

func write(w io.Writer, p []byte) error {
	if _, err := w.Write(p); err != nil {
		return fmt.Errorf("cannot write: %w", err)
	}
	return nil
}

func dialer(address string, limit time.Duration) func(context.Context) (net.Conn, error) {
	d := &net.Dialer{Timeout: limit}
	return func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "tcp", address) }
}
