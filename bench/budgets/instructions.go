package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
)

// Instructions are counted by valgrind (apt-get install valgrind). They depend
// neither on what else the machine does nor on how fast it is today, so two
// versions can be told apart that are 1 % from each other.
//
// A program is run twice for each work, once with three times as many units: the
// difference is what the units cost, without the start of the program. There is no
// collection of garbage, because when that comes is chance.

// countedUnits is how many units the shorter run does.
func countedUnits(c contest) int {
	switch {
	case c.tasks > 1:
		return 20
	case c.id == "B7":
		return 100_000
	}
	return 10_000
}

// name is how a program is told which work to do.
func (c contest) name() string { return c.id + ": " + c.what }

// runUnits does the units of one work, and nothing beside.
func runUnits(cfg config) {
	for _, c := range contests() {
		if c.name() == cfg.work {
			run, stop := c.ours()
			run(cfg.units)
			stop()
			return
		}
	}
	panic("no such work: " + cfg.work)
}

// compareInstructions prints how many instructions a unit of each work takes, with
// one processor and with two, in older and in this program. Without older it prints
// its own alone.
func compareInstructions(older, only string, cfg config) {
	if only == "" {
		only = "B1|B2|B3|B4|B7"
	}
	ids := regexp.MustCompile("^(" + only + ")$")
	self, err := os.Executable()
	must(err)
	t := table{[]int{5, 36, 10, 12, 12, 10}}
	t.row("budget", "instructions a unit", "processors", "before", "now", "now/before")
	for _, c := range contests() {
		if !ids.MatchString(c.id) {
			continue
		}
		for _, procs := range []int{1, 2} {
			is, was := make([]float64, cfg.rounds), make([]float64, cfg.rounds)
			for round := range cfg.rounds {
				is[round] = countedPerUnit(self, c.name(), countedUnits(c), procs)
				if older != "" {
					was[round] = countedPerUnit(older, c.name(), countedUnits(c), procs)
				}
			}
			now, before := median(is), median(was)
			if older == "" {
				t.row(c.id, c.what, strconv.Itoa(procs), "-", fmt.Sprintf("%.1f", now), "-")
			} else {
				t.row(c.id, c.what, strconv.Itoa(procs), fmt.Sprintf("%.1f", before), fmt.Sprintf("%.1f", now), fmt.Sprintf("%.3f", now/before))
			}
		}
	}
}

// countedPerUnit returns how many instructions a unit takes.
func countedPerUnit(program, work string, units, procs int) float64 {
	return (counted(program, work, 3*units, procs) - counted(program, work, units, procs)) / float64(2*units)
}

var refs = regexp.MustCompile(`I\s+refs:\s+([0-9,]+)`)

// counted runs a program under valgrind and returns how many instructions it has
// executed.
func counted(program, work string, units, procs int) float64 {
	cmd := exec.Command("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", "--fair-sched=try",
		program, "-work", work, "-units", strconv.Itoa(units))
	cmd.Env = append(os.Environ(), "GOGC=off", "GODEBUG=asyncpreemptoff=1", "GOMAXPROCS="+strconv.Itoa(procs))
	said, err := cmd.CombinedOutput()
	if err != nil {
		panic(fmt.Sprintf("valgrind: %v\n%s", err, said))
	}
	found := refs.FindSubmatch(said)
	mustBe(found != nil)
	n, err := strconv.ParseFloat(string(bytes.ReplaceAll(found[1], []byte(","), nil)), 64)
	must(err)
	return n
}
