// Budgets measures the budgets of the design side by side, and how the cost of
// every operation grows. It prints a table and fails for nothing: machines differ,
// and most of them are busy. make bench runs it, beside the programs for the other budgets.
//
//	go run ./budgets                  # B1 to B15
//	go run ./budgets -only 'B1|B7'
//	go run ./budgets -quick           # fewer and shorter turns, no B14
//	go run ./budgets -base ./older    # beside this program, built with an older ambit
//	go run ./budgets -instructions    # instructions a unit, counted by valgrind; also with -base
//
// Ours and the peers take turns in one process; what is compared is the median of
// the ratios of the turns. Allocations are counted.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"runtime/pprof"
	"time"
)

// config is what the flags say.
type config struct {
	only    *regexp.Regexp
	chosen  bool // only says something
	quick   bool
	rounds  int
	slice   time.Duration // how long a turn is to take
	waiting int
	work    string // the name of the only work that is done, with units
	units   int    // 0: nothing is done by units
}

func main() {
	only := flag.String("only", "", "measure the budgets whose number matches this `expression`")
	quick := flag.Bool("quick", false, "fewer and shorter turns, and no B14")
	rounds := flag.Int("rounds", 0, "`turns` of each comparison; 0 means 15, or 9 in a quick run")
	waiting := flag.Int("waiting", 0, "how many `tasks` wait at once in B11 and B15; 0 means 100,000, or 20,000 in a quick run")
	base := flag.String("base", "", "this `program`, built with an older ambit: compare with it")
	raw := flag.Bool("raw", false, "print what one run takes, for a program that compares")
	rows := flag.Bool("rows", false, "write rows, for a program")
	profile := flag.String("profile", "", "write a profile of the processor time to this `file`")
	instructions := flag.Bool("instructions", false, "count instructions instead, by valgrind")
	work := flag.String("work", "", "the `name` of the work that -units is about")
	units := flag.Int("units", 0, "do so many `units` of one work, for a program that counts")
	flag.Parse()

	match, err := regexp.Compile("^(" + *only + ")$")
	if err != nil || *rounds < 0 || *waiting < 0 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	cfg := config{match, *only != "", *quick, cmp.Or(*rounds, 15), 20 * time.Millisecond, cmp.Or(*waiting, 100_000), *work, *units}
	if *quick {
		cfg.rounds, cfg.slice, cfg.waiting = cmp.Or(*rounds, 9), 8*time.Millisecond, cmp.Or(*waiting, 20_000)
	}
	if *only == "" {
		cfg.only = regexp.MustCompile("")
	}
	if !*raw && !*rows && *units == 0 {
		fmt.Printf("%s %s/%s, %d cores\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0))
	}
	defer profiled(*profile)()
	switch {
	case *units > 0:
		runUnits(cfg)
	case *raw:
		printRaw(cfg)
	case *instructions:
		compareInstructions(*base, *only, cfg)
	case *base != "":
		compareWith(*base, *only, cfg)
	case *rows:
		writeBudgets(cfg)
	default:
		printBudgets(cfg)
	}
}

// profiled writes a profile of the processor time to a file, if there is one, until what it returns is called.
func profiled(file string) (stop func()) {
	if file == "" {
		return func() {}
	}
	f, err := os.Create(file)
	must(err)
	must(pprof.StartCPUProfile(f))
	return pprof.StopCPUProfile
}
