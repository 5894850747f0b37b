// Tailresume follows a log over connections that break: nothing is lost, nothing comes
// twice, and the last line counts even if it has no newline.
//
// Without -url it shows that: a bash script writes a log, a server on the loopback
// interface serves it and cuts its connections at random places, and what was received
// is compared with what was written.
//
//	go run ./examples/tailresume
//	go run ./examples/tailresume -cut 5000 -script 'seq 1 100000'
//	go run ./examples/tailresume -url http://127.0.0.1:7000/log
//
// follow.go is the follower; serve.go is a server that cuts, demo.go the comparison.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/service"
)

const about = `usage: tailresume [flags]
Tailresume follows a log over connections that break, and prints every byte of it once.
Exit status: 0 received as a whole, 1 not, 2 wrong arguments, 130, 143 stopped, 141 not read.
`

const defaultScript = `
for i in {1..60}; do
	echo "line $i of a log that grows while it is read"
	sleep 0.03
done
printf 'the last line, which has no newline'`

func main() {
	d := &demo{follower: &follower{client: http.DefaultClient, out: os.Stdout}}
	flag.StringVar(&d.url, "url", "", "follow the log at this `address`")
	flag.StringVar(&d.script, "script", defaultScript, "bash `script` that writes the log")
	flag.IntVar(&d.cut, "cut", 600, "cut connections after so many `bytes`, on average; 0 for never")
	flag.IntVar(&d.attempts, "attempts", 20, "give up after `n` connections in a row that bring nothing")
	pause := flag.Duration("pause", 10*time.Millisecond, "the first `time` between connections; it doubles up to 1s, until one brings something")
	flag.Usage = func() {
		fmt.Fprint(os.Stderr, about)
		flag.PrintDefaults()
	}
	flag.Parse()
	u, err := url.Parse(d.url)
	switch {
	case flag.NArg() > 0, d.attempts < 1, *pause <= 0, d.url != "" && (err != nil || u.Host == ""):
		say("only flags; -url is like http://127.0.0.1:7000/log, -attempts and -pause are more than 0")
		os.Exit(2)
	case d.cut != 0 && (d.cut < 400 || d.cut > 1<<30): // a connection would bring no more than a header
		say("-cut is 0, or 400 to %d", 1<<30)
		os.Exit(2)
	}
	// When nobody reads our output any more a write to it fails, and does not end
	// the process with a script that runs.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	d.pause = async.Jitter(0.2, async.Backoff(*pause, time.Second))
	run := d.follow
	if d.url == "" {
		run = d.run
	}
	service.Main(func(ctx context.Context) error {
		err := run(ctx)
		if errors.Is(err, syscall.EPIPE) { // what that signal would have made of it
			err = fmt.Errorf("%w: %w", &service.SignalError{Signal: syscall.SIGPIPE}, err)
		}
		return err
	})
}

// say tells the user something. The standard output is for the log.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "tailresume: "+format+"\n", args...) }
