// Taskqueue measures the budgets T1 to T10 of package taskqueue, beside asynq on the same Redis server and beside river in
// SQLite files and on the same PostgreSQL server. It starts and stops the servers itself. It prints a table and
// fails for nothing: machines differ, and most of them are busy.
//
//	go run ./taskqueue                  # T1 to T10
//	go run ./taskqueue -only 'T1|T2'
//	go run ./taskqueue -profile cpu.out -only T2
//
// Ours and the peer take turns; what is compared is the median of the ratios of the
// turns. Redis listens on a unix socket and keeps an append-only file with
// fsync every second; PostgreSQL waits for its disk. Payloads have 100 bytes.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/pprof"
	"syscall"

	"github.com/ambit-go/ambit/bench/internal/measure"
)

// A bench is what the budgets are measured with.
type bench struct {
	ctx    context.Context
	rounds int
	slow   bool
	server *server
	tell   func(measure.Row)
}

// A budget is measured by one part of the program.
type budget struct {
	id      string
	measure func(*bench)
}

var budgets = []budget{
	{"T1", measureEnqueue},
	{"T2", measureWork},
	{"T3", measureLateness},
	{"T4", measureMemory},
	{"T5", measureIdle},
	{"T6", measureCrash},
	{"T7", measureClaim},
	{"T8", measureSQLite},
	{"T9", measurePostgres},
	{"T10", measureEnqueueTx},
}

func main() {
	if len(os.Args) > 1 && children[os.Args[1]] != nil {
		children[os.Args[1]](os.Args[2:])
		return
	}
	only := flag.String("only", "", "measure the budgets whose number matches this `expression`")
	rounds := flag.Int("rounds", 0, "`turns` of each comparison; 0 means 9, or 5 in a quick run")
	quick := flag.Bool("quick", false, "fewer turns")
	rows := flag.Bool("rows", false, "write rows, for a program")
	slow := flag.Bool("slow", false, "wait for the rerun of asynq in T6, too: a minute or two")
	profile := flag.String("profile", "", "write a profile of the processor time to this `file`")
	flag.Parse()
	match, err := regexp.Compile("^(" + *only + ")$")
	if err != nil || *rounds < 0 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if *only == "" {
		match = regexp.MustCompile("")
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		must(err)
		must(pprof.StartCPUProfile(f))
		defer pprof.StopCPUProfile()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	turns := cmp.Or(*rounds, 9)
	if *quick {
		turns = cmp.Or(*rounds, 5)
	}
	b := &bench{ctx: ctx, rounds: turns, slow: *slow, tell: func(r measure.Row) { r.Print(os.Stdout) }}
	if *rows {
		b.tell = func(r measure.Row) { must(measure.Write(os.Stdout, measure.Record{Row: &r})) }
	}
	measureAll(b, match)
}

func measureAll(b *bench, match *regexp.Regexp) {
	b.server = startServer(b.ctx)
	defer b.server.stop()
	fmt.Printf("%s %s/%s, %d cores, Redis %s, load at the start %.1f\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), b.server.version(b.ctx), measure.Load())
	measure.PrintHeader(os.Stdout)
	for _, one := range budgets {
		if match.MatchString(one.id) && b.ctx.Err() == nil {
			one.measure(b)
		}
	}
	fmt.Printf("\nload at the end %.1f\n", measure.Load())
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
