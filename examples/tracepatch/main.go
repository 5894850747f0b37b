// Tracepatch runs a script as the step of a job and uploads its log while it grows,
// with PATCH requests that say where their bytes belong. Whatever goes wrong on the
// way, the server ends up with the log as it was written, also of a job that was
// cancelled.
//
//	go run ./examples/tracepatch -url http://127.0.0.1:8080/jobs/1 -script 'make test' -after 'make clean'
//
// job.go has the two levels of a stop, upload.go sends the log, journal.go keeps it;
// server_test.go is the other side, with faults.
package main

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/ambit-go/ambit/service"
)

const about = `usage: tracepatch -url address [flags]

Tracepatch runs a script, then the after-script, and uploads what they print. The
first SIGINT or SIGTERM cancels the job: the script is told to end, the after-script
is run, and all of the log is sent. The second one ends all three.

Exit status: 0 done, 1 the job has failed, or the server has stopped it or has not
got its whole log, 2 wrong arguments, 130 and 143 stopped by a signal.

`

// A config is what the flags say.
type config struct {
	url, script, after string
	age, touch         time.Duration
	grace, final       time.Duration
	size               int
}

func main() {
	c := new(config)
	flag.StringVar(&c.url, "url", "", "upload to this `address`")
	flag.StringVar(&c.script, "script", "echo hello", "bash `script` of the job")
	flag.StringVar(&c.after, "after", "", "bash `script` that is run after it, also if it is cancelled")
	flag.DurationVar(&c.age, "age", time.Second, "send what is this `old`")
	flag.IntVar(&c.size, "size", 64<<10, "send so many `bytes` at once")
	flag.DurationVar(&c.touch, "touch", time.Second, "ask the server this `often` how the job stands")
	flag.DurationVar(&c.grace, "grace", 10*time.Second, "the `time` between TERM and KILL")
	flag.DurationVar(&c.final, "final", 30*time.Second, "the `time` for the rest of the log at the end, and again for the word that it was all")
	flag.Usage = func() {
		fmt.Fprint(os.Stderr, about)
		flag.PrintDefaults()
	}
	flag.Parse()
	u, err := url.Parse(c.url)
	if flag.NArg() > 0 || err != nil || u.Host == "" || min(c.age, c.touch, c.final, c.grace) <= 0 || c.size < 1 {
		say("only flags; -url is like http://127.0.0.1:8080/jobs/1, the times and -size are more than 0")
		os.Exit(2)
	}
	service.Main(c.run)
}

// say tells the user something.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "tracepatch: "+format+"\n", args...) }
