// Scaling measures how throughput grows with processors, workers, producers and consumers, for async, scheduler, jobqueue,
// taskqueue, locks and kvqueue, and how long jobs wait for a busy consumer. make bench runs it and fits
// the universal scalability law to what it has measured.
//
//	go run ./scaling -only 'S1|S20'
//	go run ./scaling -quick
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/ambit-go/ambit/bench/internal/measure"
)

func main() {
	only := flag.String("only", "", "measure the curves whose number matches this `expression`")
	quick := flag.Bool("quick", false, "fewer and shorter turns")
	rounds := flag.Int("rounds", 0, "`turns` of each point; 0 means 11, or 5 in a quick run")
	rows := flag.Bool("rows", false, "write for a program")
	flag.Parse()
	match, err := regexp.Compile("^(" + cmp.Or(*only, ".*") + ")$")
	if err != nil || *rounds < 0 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	turns, slice, jobs := cmp.Or(*rounds, 11), 30*time.Millisecond, 4000
	if *quick {
		turns, slice, jobs = cmp.Or(*rounds, 5), 10*time.Millisecond, 300
	}
	tell := show
	if *rows {
		tell = func(r measure.Record) { must(measure.Write(os.Stdout, r)) }
	}
	for _, c := range curves() {
		if match.MatchString(c.ID) {
			measured := c.measure(turns, slice)
			tell(measure.Record{Curve: &measured})
		}
	}
	if match.MatchString("S20") {
		for _, load := range []float64{0.5, 0.7, 0.85, 0.95} {
			measured := waitAt(load, jobs)
			tell(measure.Record{Queue: &measured})
		}
	}
}

// show prints a record for people.
func show(r measure.Record) {
	switch {
	case r.Curve != nil:
		fmt.Printf("%s %s: %s\n", r.Curve.ID, r.Curve.Group, r.Curve.What)
		for _, p := range r.Curve.Points {
			low, high := p.X.Interval()
			fmt.Printf("  %4d %-10s %12.0f /s (%.0f–%.0f)\n", p.N, r.Curve.Axis, p.X.Median(), low, high)
		}
	case r.Queue != nil:
		fmt.Printf("%s busy for %.2f of the time: jobs wait %.2f ms, Kingman %.2f ms\n", r.Queue.ID, r.Queue.Load, r.Queue.Waited/1e6, r.Queue.Kingman/1e6)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
