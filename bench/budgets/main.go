// Budgets measures the budgets of the design side by side, and how the cost of
// every operation grows. It prints tables and fails for nothing: machines differ,
// and most of them are busy.
//
//	go run ./budgets                  # B1 to B15, except growth
//	go run ./budgets -only 'B1|B7'
//	go run ./budgets -growth          # B14: ns a unit at 1,000 and at 100,000
//	go run ./budgets -base ./older    # beside this program, built with an older ambit
//	go run ./budgets -instructions    # instructions a unit, counted by valgrind; also with -base
//
// Ours and the peer take turns in one process; what is compared is the median of
// the ratios of the turns. Allocations are counted.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
)

// config is what the flags say.
type config struct {
	only    *regexp.Regexp
	rounds  int
	waiting int
	work    string // the name of the only work that is done, with units
	units   int    // 0: nothing is done by units
}

func main() {
	only := flag.String("only", "", "measure the budgets whose number matches this `expression`")
	rounds := flag.Int("rounds", 11, "`turns` of each comparison, at least 1")
	waiting := flag.Int("waiting", 100_000, "how many `tasks` wait at once in B11 and B15")
	growth := flag.Bool("growth", false, "print the table of growth instead")
	base := flag.String("base", "", "this `program`, built with an older ambit: compare with it")
	raw := flag.Bool("raw", false, "print what one run takes, for a program that compares")
	instructions := flag.Bool("instructions", false, "count instructions instead, by valgrind")
	work := flag.String("work", "", "the `name` of the work that -units is about")
	units := flag.Int("units", 0, "do so many `units` of one work, for a program that counts")
	flag.Parse()

	match, err := regexp.Compile("^(" + *only + ")$")
	if err != nil || *rounds < 1 || *waiting < 1 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	cfg := config{match, *rounds, *waiting, *work, *units}
	if *only == "" {
		cfg.only = regexp.MustCompile("")
	}
	if !*raw && *units == 0 {
		fmt.Printf("%s %s/%s, %d cores\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0))
	}
	switch {
	case *units > 0:
		runUnits(cfg)
	case *raw:
		printRaw(cfg)
	case *instructions:
		compareInstructions(*base, *only, cfg)
	case *base != "":
		compareWith(*base, *only, cfg)
	case *growth:
		printGrowth(cfg)
	default:
		printBudgets(cfg)
	}
}
