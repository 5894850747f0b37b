// Tracepatch runs a script as the step of a job and uploads its log while it grows,
// with PATCH requests that say where their bytes belong. Whatever goes wrong on the
// way, the server ends up with the log as it was written, also of a job that was
// cancelled.
//
//	go run ./examples/tracepatch
//	go run ./examples/tracepatch -script 'make test' -after 'make clean'
//	go run ./examples/tracepatch -url http://127.0.0.1:8080/jobs/1
//
// job.go has the two levels of a stop, upload.go sends the log, journal.go keeps it,
// and server.go is the other side, with faults, for when there is no -url.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/service"
)

const about = `usage: tracepatch [flags]

Tracepatch runs a script as the step of a job, then the after-script, and uploads
what they print. Without -url it starts a server that fails often and prints the log
as that has it. The first SIGINT or SIGTERM cancels the job: the script is told to
end, the after-script is run, and all of the log is sent. The second one ends all
three.

Exit status: 0 done, 1 the job has failed, or the server has stopped it or has not
got its whole log, 2 wrong arguments, 130 and 143 stopped by a signal.

`

// A config is what the flags say.
type config struct {
	url, script, after string
	age, touch         time.Duration
	grace, final       time.Duration
	size               int
	seed               uint64
}

const (
	defaultScript = `for i in {1..8}; do echo "line $i, half a second after the last"; sleep 0.5; done; echo -n done`
	defaultAfter  = `echo "cleaned up"`
)

func main() {
	c := new(config)
	flag.StringVar(&c.url, "url", "", "upload to this `address`")
	flag.StringVar(&c.script, "script", defaultScript, "bash `script` of the job")
	flag.StringVar(&c.after, "after", defaultAfter, "bash `script` that is run after it, also if it is cancelled")
	flag.DurationVar(&c.age, "age", time.Second, "send what is this `old`")
	flag.IntVar(&c.size, "size", 64<<10, "send so many `bytes` at once")
	flag.DurationVar(&c.touch, "touch", time.Second, "ask the server this `often` how the job stands")
	flag.DurationVar(&c.grace, "grace", 10*time.Second, "the `time` between TERM and KILL")
	flag.DurationVar(&c.final, "final", 30*time.Second, "the `time` for what is left of the log when the job is over, and again for the word that it was all")
	flag.Uint64Var(&c.seed, "seed", 1, "`number` that decides which requests our own server fails")
	flag.Usage = func() {
		fmt.Fprint(os.Stderr, about)
		flag.PrintDefaults()
	}
	flag.Parse()
	u, err := url.Parse(c.url)
	if flag.NArg() > 0 || c.age <= 0 || c.touch <= 0 || c.final <= 0 || c.grace <= 0 || c.size < 1 ||
		c.url != "" && (err != nil || u.Host == "" || !strings.HasPrefix(u.Scheme, "http")) {
		flag.Usage()
		os.Exit(2)
	}
	// When nobody reads our output any more a write to it fails, and does not end
	// the process with a job that runs.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	service.Main(c.run)
}

// run is the program. The server is there for longer than the job, so its scope is
// around that, and does not end with the first signal.
func (c *config) run(ctx context.Context) error {
	client := &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone(), Timeout: 30 * time.Second}
	if c.url != "" {
		return c.job(ctx, client, c.url)
	}
	return async.Scope(context.WithoutCancel(ctx), func(around context.Context) error {
		s := &traceServer{fault: randomFaults(c.seed), seen: func(p []byte) { fmt.Printf("%s", p) }}
		address, err := s.serve(around)
		if err != nil {
			return err
		}
		return c.job(ctx, client, address)
	})
}

// say tells the user something. The standard output is for the log.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "tracepatch: "+format+"\n", args...) }
