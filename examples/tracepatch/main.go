//go:build unix

// Tracepatch runs a script as the step of a job and uploads its log while it
// grows, with HTTP PATCH requests that say where their bytes belong. Whatever
// goes wrong on the way, the server ends up with the log as it was written, also
// of a job that was canceled.
//
// Without -url it starts a server of its own that fails often, in all ways there
// are, and prints the log as that server sees it.
//
//	go run ./examples/tracepatch
//	go run ./examples/tracepatch -script 'make test' -after 'make clean'
//	go run ./examples/tracepatch -url http://127.0.0.1:8080/jobs/1
//
// It is meant to be copied: upload.go sends the log, finish.go its end, stop.go
// is cancel and abort, job.go the step, journal.go keeps the log, server.go is
// the other side, with faults; main.go and demo.go make a program of it. When to
// send is decided by examples/internal/batch.
//
// It exits with 0 when the job has succeeded, 1 when it has failed, 2 when the
// arguments are wrong, 3 and 4 when the server has canceled or aborted it, 5
// when the server does not have the whole log, 130 and 143 when stopped by a
// signal. (go run hides the status: it prints it and exits with 1.)
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/batch"
	"github.com/ambit-go/ambit/examples/internal/cli"
)

// The exit statuses beside those of package cli.
const (
	statusCanceled   = 3
	statusAborted    = 4
	statusIncomplete = 5
)

func main() { newProgram().Main() }

// A config is what the flags say.
type config struct {
	url, script, after string
	age, touch         time.Duration
	grace, final       time.Duration
	size               int
	limit              int64
	seed               uint64
}

const (
	defaultScript = `for i in {1..8}; do echo "line $i, half a second after the last"; sleep 0.5; done; echo -n done`
	defaultAfter  = `echo "cleaned up"`
)

func newProgram() *cli.Program {
	c := new(config)
	return &cli.Program{
		Name:     "tracepatch",
		Synopsis: "[flags]",
		About: `Tracepatch runs a script as the step of a job and uploads its log while it
grows. Without -url it starts a server that fails often, in all ways there are,
and prints the log as that server sees it. The first SIGINT or SIGTERM cancels the
job, and the after-script is still run; the second one aborts it.`,
		Exit: "0 the job has succeeded, 1 it has failed, 2 wrong arguments, 3 canceled by the server, 4 aborted by the server, " +
			"5 the server does not have the whole log, 130 and 143 stopped by a signal",
		Flags: c.define,
		Run:   c.run,
	}
}

func (c *config) define(flags *flag.FlagSet) {
	flags.StringVar(&c.url, "url", "", "upload to this `address`, not to a server of our own")
	flags.StringVar(&c.script, "script", defaultScript, "bash `script` of the job")
	flags.StringVar(&c.after, "after", defaultAfter, "bash `script` that is run after it, also if it is canceled")
	flags.DurationVar(&c.age, "age", time.Second, "send what is this `old`, until the server says otherwise")
	flags.IntVar(&c.size, "size", 64<<10, "send so many `bytes` at once, and in one request at most")
	flags.Int64Var(&c.limit, "limit", 4<<20, "the `bytes` that a log may have; the rest is left out")
	flags.DurationVar(&c.touch, "touch", time.Second, "ask the server this `often` whether the job is canceled")
	flags.DurationVar(&c.grace, "grace", 10*time.Second, "the `time` between TERM and KILL")
	flags.DurationVar(&c.final, "final", 30*time.Second, "the `time` for what is left of the log when the job is over, and as much for the report of its end")
	flags.Uint64Var(&c.seed, "seed", 1, "`number` that decides which requests our own server fails")
}

func (c *config) check(args []string) error {
	switch {
	case len(args) > 0:
		return cli.Usagef("unexpected argument %q; a script is given as -script", args[0])
	case c.age <= 0 || c.touch <= 0 || c.final <= 0 || c.grace <= 0:
		return cli.Usagef("-age, -touch, -grace and -final must be more than 0")
	case c.size < 1 || c.limit < 1:
		return cli.Usagef("-size and -limit must be 1 or more")
	}
	if c.url != "" {
		u, err := url.Parse(c.url)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return cli.Usagef("%q is not an address such as http://127.0.0.1:8080/jobs/1", c.url)
		}
	}
	return nil
}

func (c *config) run(ctx context.Context, args []string, std cli.Streams) error {
	if err := c.check(args); err != nil {
		return err
	}
	report := func(format string, args ...any) { fmt.Fprintf(std.Err, "tracepatch: "+format+"\n", args...) }
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 30 * time.Second, CheckRedirect: stay}
	cli.FailWritesToClosedPipes()
	return async.Scope(ctx, func(ctx context.Context) error {
		if c.url != "" {
			return c.job(ctx, client, c.url, report)
		}
		return c.demo(ctx, std, func(ctx context.Context, url string) error {
			return c.job(ctx, client, url, report)
		})
	}, async.Name("tracepatch"))
}

// stay has a redirect count as the answer that it is: to follow it would make a
// GET of a PATCH, and its answer says nothing about the log.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// job runs the job and uploads its log, in one scope, which everything belongs
// to. The order of its end is the point of it: the scripts, with their output;
// then, with budgets of their own although the scope may be cancelled, what is
// left in the batch, and the report of the end.
func (c *config) job(ctx context.Context, client *http.Client, url string, report func(string, ...any)) error {
	return c.upload(ctx, client, url, report, (*job).run)
}

// upload is job with what the job does as an argument.
func (c *config) upload(ctx context.Context, client *http.Client, url string, report func(string, ...any), run func(*job, *stop) error) error {
	log, err := newJournal(c.limit)
	if err != nil {
		return err
	}
	j := &job{script: c.script, after: c.after, grace: c.grace, log: log}
	u := &uploader{client: client, url: strings.TrimSuffix(url, "/"), log: log, piece: int64(c.size), report: report,
		pause: async.Jitter(0.2, async.Backoff(50*time.Millisecond, 5*time.Second)),
	}
	var ran error
	err = async.Scope(ctx, func(ctx context.Context) error {
		async.OnExit(ctx, func(context.Context, error) error { return log.file.Close() })
		s := newStop(ctx, report)
		cli.OnSignal(ctx, s.signal, os.Interrupt, syscall.SIGTERM)
		u.stop = s
		async.OnExit(ctx, func(ctx context.Context, _ error) error {
			err := u.finish(ctx, j)
			u.tell(err)
			return err
		})
		u.batch = batch.New(ctx, batch.Limits{Size: c.size, Age: c.age}, func(ctx context.Context) error {
			err := u.push(ctx)
			if ctx.Err() != nil {
				return nil // cut short: finish makes up for it, or fails
			}
			return err
		})
		log.added = u.batch.Added
		async.Repeat(ctx, async.Every(c.touch), u.touch, async.AfterInterval(), async.Daemon(), async.Name("touch"))
		ran = run(j, s)
		return ran
	}, async.Name("job"), async.HookTimeout(c.final))
	return outcome(j, ran, u.lost, err)
}

// outcome is what there is to tell of a job that has returned ran, of an upload
// that is lost if that is not nil, and of their scope, which has ended with err:
// each of them once. That the last flush was cut short means nothing if the log
// is complete after all.
func outcome(j *job, ran, lost, err error) error {
	sig := new(cli.SignalError)
	switch {
	case errors.As(err, &sig):
		return errors.Join(sig, lost)
	case errors.As(ran, new(*uploadError)): // the job was stopped because of it
		return lost
	case ran != nil || lost != nil:
		return errors.Join(j.failed(ran), lost)
	case errors.As(err, new(*async.TimeoutError)):
		return nil
	}
	return err
}

// tell tells how the upload went.
func (u *uploader) tell(err error) {
	if err != nil || u.lost != nil {
		return
	}
	size, sum := u.log.Sum()
	u.report("the server has all %d bytes, %.15s: %d requests, of which %d failed and %d were resynchronised",
		size, sum, u.stats.patches.Load(), u.stats.failed.Load(), u.stats.resynced.Load())
}
