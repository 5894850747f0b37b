package service_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/service"
)

// programs are what the test binary can be instead of a test; see TestMain. They say
// on their standard output how far they are, and hang on what their standard input says.
var programs = map[string]func(){
	// Run ends by itself.
	"nil":           main(func(context.Context) error { return nil }),
	"error":         main(func(context.Context) error { return errors.New("no bed") }),
	"status 7":      main(func(context.Context) error { return fmt.Errorf("night: %w", ownStatus(7)) }),
	"status 256":    main(func(context.Context) error { return ownStatus(256) }),
	"panic":         main(func(context.Context) error { panic("boom") }),
	"task panics":   main(taskPanics),
	"Goexit":        main(func(context.Context) error { runtime.Goexit(); return nil }),
	"detached":      main(detached),
	"panics, stuck": main(panicsAndHangs),
	"patient":       main(detachedForAWhile, service.Grace(service.Forever), service.Delay(time.Second)),

	// It serves until it is told to stop.
	"clean":               main(services(worker("worker", nil))),
	"boot":                main(boot),
	"drain":               main(services(worker("drainer", func(ctx context.Context) error { return waitFor(ctx, "go on") }))),
	"debounced":           main(services(worker("drainer", func(ctx context.Context) error { return waitFor(ctx, "go on") })), service.Debounce(time.Hour)),
	"drain, err":          main(services(worker("drainer", func(context.Context) error { return errors.New("cannot flush") }))),
	"unwritten by a task": main(unwrittenByATask),
	"unwritten":           main(unwritten),
	"unwritten, bad":      main(unwrittenAndFailed),
	"unwritten, stuck":    main(unwrittenAndStuck, service.Grace(time.Hour), service.GiveUp(time.Hour)),
	"waits":               main(waits),
	"says it":             main(func(ctx context.Context) error { ready(); <-ctx.Done(); return context.Cause(ctx) }),
	"late":                main(late),
	"hangs":               main(hangs),
	"hangs, service":      main(hangsService, service.Grace(time.Hour), service.GiveUp(time.Hour)),
	"hangs, text":         main(func(ctx context.Context) error { tellSignals(ctx); return hangingText{} }),
	"hangs, noted":        main(hangsNoted, service.Grace(time.Hour), service.GiveUp(time.Hour)),
	"hangs, failed":       main(hangsFailed, service.Grace(time.Hour), service.GiveUp(time.Hour)),
	"grace":               main(services(worker("slow", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })), service.Grace(time.Millisecond)),
	"gives up":            main(givesUp, service.Grace(time.Millisecond), service.GiveUp(time.Millisecond)),
	"bound":               main(bound),
	"two runs":            main(twoRuns),
	"hurry":               main(hurry),
	"twice":               twice,
	"web":                 main(web),
	"talks":               main(talks),
	"talks, alone":        main(talksAlone),
}

func main(run func(context.Context) error, opts ...service.Option) func() {
	return func() { service.Main(run, opts...) }
}

func say(args ...any) { fmt.Println(args...) }
func ready()          { say("ready") }

// input is what the test has told the program.
var input = sync.OnceValue(func() <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for {
			var line string
			if _, err := fmt.Scanln(&line); err != nil {
				return
			}
			lines <- line
		}
	}()
	return lines
})

// waitFor waits until the test says anything.
func waitFor(ctx context.Context, _ string) error {
	say("waiting")
	select {
	case <-input():
		say("told")
		return nil
	case <-ctx.Done():
		say("cut")
		return ctx.Err()
	}
}

type ownStatus int

func (s ownStatus) Error() string   { return fmt.Sprint("status of its own: ", int(s)) }
func (s ownStatus) ExitStatus() int { return int(s) }

// hangingText is an error whose text is never finished.
type hangingText struct{}

func (hangingText) Error() string { ready(); select {} }

func services(list ...service.Service) func(context.Context) error {
	return func(ctx context.Context) error { return service.Run(ctx, list) }
}

// worker serves until it is drained; drain may be nil.
func worker(name string, drain func(context.Context) error) service.Service {
	quit := make(chan struct{})
	s := service.Service{Name: name, Startup: time.Hour, Run: func(ctx context.Context) error {
		service.Ready(ctx)
		ready()
		select {
		case <-quit:
			return nil
		case <-ctx.Done():
			say("told to stop:", context.Cause(ctx))
			return ctx.Err()
		}
	}}
	if drain != nil {
		s.Drain = func(ctx context.Context) error {
			defer close(quit)
			return drain(ctx)
		}
	}
	return s
}

func taskPanics(ctx context.Context) error {
	return service.Run(ctx, []service.Service{
		worker("other", func(context.Context) error { say("drained"); return nil }),
		{Name: "bad", Run: func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { panic("boom in a task") })
			<-ctx.Done()
			return nil
		}},
	})
}

// deaf does not look at its ctx. Those after it are started when it runs.
var deaf = service.Service{Name: "deaf", Startup: time.Hour, Run: func(ctx context.Context) error {
	service.Ready(ctx)
	select {}
}}

func panicsAndHangs(ctx context.Context) error {
	return service.Run(ctx, []service.Service{
		deaf,
		{Name: "bad", Run: func(context.Context) error { panic("boom") }},
	}, service.Grace(time.Millisecond), service.GiveUp(time.Millisecond))
}

func boot(ctx context.Context) error {
	return service.Run(ctx, []service.Service{
		worker("first", func(context.Context) error { say("drained"); return nil }),
		{Name: "boot", Startup: time.Hour, Run: func(ctx context.Context) error {
			say("booting")
			<-ctx.Done()
			say("cancelled:", context.Cause(ctx))
			return ctx.Err()
		}, Drain: func(context.Context) error { say("drained although it was not ready"); return nil }},
	})
}

func detachedForAWhile(ctx context.Context) error {
	async.Detach(ctx, "audit", func(ctx context.Context) error { return async.Sleep(ctx, 20*time.Millisecond) })
	return nil
}

func detached(ctx context.Context) error {
	async.Detach(ctx, "audit", func(context.Context) error { return errors.New("audit failed") })
	return nil
}

// saves is a service that is told to stop before it has saved all.
func saves(text string) service.Service {
	return service.Service{Name: "saver", Run: func(ctx context.Context) error {
		ready()
		<-ctx.Done()
		return fmt.Errorf(text, ctx.Err())
	}}
}

func unwritten(ctx context.Context) error {
	return service.Run(ctx, []service.Service{saves("12 rows were not written: %w"), {Name: "quiet", Run: await}})
}

func unwrittenAndFailed(ctx context.Context) error {
	return service.Run(ctx, []service.Service{saves("12 rows\nwere not written: %w"), worker("drainer", func(context.Context) error {
		return errors.New("cannot flush")
	})})
}

func unwrittenAndStuck(ctx context.Context) error {
	tellSignals(ctx)
	stuck := deaf
	stuck.Drain = func(context.Context) error { say("cancelled"); select {} }
	return service.Run(ctx, []service.Service{stuck, saves("12 rows were not written: %w")})
}

// waits has no services; it ends at the first signal with what its scope says.
func waits(ctx context.Context) error {
	async.Go(ctx, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	ready()
	<-ctx.Done()
	return nil
}

// late is told to stop when run has returned.
func late(ctx context.Context) error {
	cut := make(chan struct{})
	// Shutdown waits for the hook, and for a task that it has cancelled for a moment only.
	hook := async.OnAbort(func(context.Context, error) error { <-cut; return nil })
	async.Detach(ctx, "flush", func(ctx context.Context) error {
		defer close(cut)
		return waitFor(ctx, "go on")
	}, hook, async.HookTimeout(time.Minute))
	<-ctx.Done()
	say("run returns")
	return nil
}

// tellSignals says when signals have come.
func tellSignals(ctx context.Context) {
	ctx = context.WithoutCancel(ctx) // its end is not to be told as a signal
	context.AfterFunc(service.Hurry(ctx), func() { say("hurried") })
}

// hangs does not look at anything, and holds up all that could be held up.
func hangs(ctx context.Context) error {
	async.Detach(ctx, "deaf", func(context.Context) error { select {} })
	async.OnExit(ctx, func(context.Context, error) error { select {} })
	context.AfterFunc(ctx, func() { say("cancelled"); select {} })
	context.AfterFunc(service.Hurry(ctx), func() { say("hurried"); select {} })
	ready()
	select {}
}

func hangsService(ctx context.Context) error {
	tellSignals(ctx)
	return service.Run(ctx, []service.Service{{
		Name:  "deaf",
		Run:   func(context.Context) error { ready(); select {} },
		Drain: func(context.Context) error { say("cancelled"); select {} },
	}})
}

// noText is an error whose text is never finished.
type noText struct{}

func (noText) Error() string { select {} }

func hangsNoted(ctx context.Context) error { return hangsWith(ctx, noText{}) }

func hangsFailed(ctx context.Context) error { return hangsWith(ctx, errors.New("root cause")) }

// hangsWith has a service that has failed, and another that hangs as it is drained.
func hangsWith(ctx context.Context, err error) error {
	tellSignals(ctx)
	context.AfterFunc(ctx, func() { say("cancelled") })
	stuck := deaf
	stuck.Drain = func(context.Context) error { ready(); select {} }
	return service.Run(ctx, []service.Service{
		stuck,
		{Name: "bad", Run: func(context.Context) error { return err }},
	})
}

func givesUp(ctx context.Context) error {
	return service.Run(ctx, []service.Service{{Name: "deaf", Run: func(context.Context) error {
		ready()
		select {}
	}}})
}

// bound opens the port that the test has bound already.
func bound(ctx context.Context) error {
	l, err := net.Listen("tcp", os.Getenv(addressVariable))
	if err != nil {
		return err
	}
	return service.Run(ctx, []service.Service{
		{Name: "first", Run: func(context.Context) error { say("started"); return nil }},
		service.HTTP("http", l, &http.Server{}),
	})
}

const addressVariable = "AMBIT_SERVICE_ADDRESS"

func twoRuns(ctx context.Context) error {
	async.Go(ctx, services(worker("one", func(context.Context) error { say("drained"); return nil })))
	return services(worker("two", func(context.Context) error { say("drained"); return nil }))(ctx)
}

// hurry cleans up in peace unless somebody is in a hurry.
func hurry(ctx context.Context) error {
	ready()
	<-ctx.Done()
	say("cleaning up, hurried:", service.Hurry(ctx).Err())
	<-service.Hurry(ctx).Done()
	say("hurried:", context.Cause(service.Hurry(ctx)))
	return nil
}

func twice() {
	service.Main(func(context.Context) error {
		service.Main(func(context.Context) error { return nil })
		return nil
	})
}

// web answers a request when the test has told it to.
func web(ctx context.Context) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	say("serving", l.Addr())
	return service.Run(ctx, []service.Service{service.HTTP("http", l, &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := waitFor(r.Context(), "go on"); err == nil {
				_, _ = io.WriteString(w, "finished")
			}
		}),
	})})
}

// complain writes to the standard error, and says whether that has failed.
func complain(what string) {
	_, err := fmt.Fprintln(os.Stderr, what)
	// A process that the test has just started may have the other end for a moment.
	for range 5000 {
		if err != nil {
			break
		}
		time.Sleep(time.Millisecond)
		_, err = fmt.Fprintln(os.Stderr, what)
	}
	say(what+":", err != nil)
}

// talks says what it does on its standard error.
func talks(ctx context.Context) error {
	return service.Run(ctx, []service.Service{{Name: "talker", Run: func(ctx context.Context) error {
		if waitFor(ctx, "go on") == nil {
			complain("written")
		}
		<-ctx.Done()
		complain("drained")
		return nil
	}}})
}

// talksAlone is the same without services.
func talksAlone(ctx context.Context) error {
	if waitFor(ctx, "go on") == nil {
		complain("written")
	}
	complain("drained")
	return nil
}

// unwrittenByATask has a service whose task has something to say as it stops.
func unwrittenByATask(ctx context.Context) error {
	return service.Run(ctx, []service.Service{{Name: "mailer", Run: func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("7 mails were not sent: %w", ctx.Err())
		})
		ready()
		<-ctx.Done()
		return nil
	}}})
}
