// Traced shows one trace that goes from a request through a queue to the worker that handles it,
// as OpenTelemetry has it.
//
//	go run ./examples/traced
//	go run ./examples/traced -orders 3
//
// orders.go is the program, of which observe.go makes spans: these are printed here, and go to a collector
// in a program of yours.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/ambit-go/ambit/service"
)

const about = `usage: traced [flags]

Traced takes orders, has a worker mail a receipt for each, and prints the traces.

Exit status: 0 done, 1 not, 2 wrong arguments, 130 and 143 stopped by a signal.

`

func main() {
	orders := flag.Int("orders", 1, "take `n` orders")
	flag.Usage = func() {
		fmt.Fprint(os.Stderr, about)
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 || *orders < 1 || *orders > 1000 {
		fmt.Fprintln(os.Stderr, "traced: only flags; -orders is 1 to 1000")
		os.Exit(2)
	}
	service.Main(func(ctx context.Context) error { return traced(ctx, *orders, os.Stdout) })
}
