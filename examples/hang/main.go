// Hang is a shop that hangs, in four ways that programs do, and shows how each is found.
//
//	go run ./examples/hang
//	curl http://127.0.0.1:6060/
//
// Nothing in it is slow for a reason: two tasks wait for each other, one does not hear that it was told to
// stop, one never gives its slot back, and two wait for jobs that nobody will add. shop.go has the four faults,
// main.go serves the page that shows them.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asyncz"
	"github.com/ambit-go/ambit/async/record"
	"github.com/ambit-go/ambit/service"
)

const about = `usage: hang [flags]

Hang does four things that never end, and serves a page that shows why. It works until it gets SIGINT or SIGTERM.

Exit status: 1 it cannot listen, 2 wrong arguments, 130 and 143 stopped by a signal.

`

func main() {
	addr := flag.String("addr", "127.0.0.1:6060", "listen on this `address`; with port 0 one that is free")
	flag.Usage = func() {
		fmt.Fprint(os.Stderr, about)
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 {
		say("only flags")
		os.Exit(2)
	}
	service.Main(func(ctx context.Context) error { return run(ctx, *addr) })
}

// run runs the shop, and beside it the page, which looks at the whole process.
func run(ctx context.Context, addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	rec := record.New() // of the shop: for the time line
	page := asyncz.Handler(asyncz.Texts(), asyncz.Recorder(rec))
	say("what hangs here, and why? http://%s/", l.Addr())
	return service.Run(ctx, []service.Service{
		{Name: "shop", Run: func(ctx context.Context) error { return shop(ctx, async.Observe(rec)) }},
		{Name: "ages", Run: page.Run},
		service.HTTP("asyncz", l, &http.Server{Handler: page, ReadHeaderTimeout: 10 * time.Second}),
	})
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "hang: "+format+"\n", args...) }
