package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ambit-go/ambit/bench/internal/measure"
)

// A program measures some budgets.
type program struct {
	name    string
	numbers []string // of what it measures
	servers []string // the commands that it needs
	command func(ctx context.Context, cfg config, numbers []string) *exec.Cmd
	parse   func(line string) []measure.Row // of a program that does not write records
}

func numbered(letter string, n int, more ...string) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(letter, i+1))
	}
	return append(all, more...)
}

var programs = []program{
	{name: "budgets", numbers: slices.DeleteFunc(numbered("B", 15, "B5b"), func(n string) bool { return n == "B12" }), command: built},
	{name: "scaling", numbers: numbered("S", 20), command: built},
	{name: "taskqueue", numbers: numbered("T", 8), servers: []string{"redis-server"}, command: built},
	{name: "locks", numbers: slices.Collect(keys(lockTests)), servers: []string{"redis-server", "mariadbd", "etcd"}, command: locksTest},
	{name: "kvqueue", numbers: slices.Collect(keys(kvTests)), servers: []string{"etcd"}, command: kvTest, parse: parseKV},
}

// lockTests and kvTests are the tests that measure a budget.
var (
	lockTests = map[string]string{
		"L1": "TestUncontended", "L2": "TestUncontended", "L3": "TestUncontended", "L4": "TestHandOff",
		"L5": "TestContended|TestAThousandWaiters", "L6": "TestRecovery", "L7": "TestRenewal", "L8": "TestIdle",
	}
	kvTests = map[string]string{"K1": "TestTable", "K2": "TestEnqueue", "K3": "TestDepth", "K4": "TestTable", "K5": "TestTable"}
)

func keys(of map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		names := make([]string, 0, len(of))
		for name := range of {
			names = append(names, name)
		}
		slices.Sort(names)
		slices.Values(names)(yield)
	}
}

// chosen returns the numbers of a program that are to be measured.
func (p program) chosen(only *regexp.Regexp) (numbers []string) {
	for _, n := range p.numbers {
		if only == nil || only.MatchString(n) {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// built is a program of bench that stands beside this one.
func built(ctx context.Context, cfg config, numbers []string) *exec.Cmd {
	args := []string{"-rows"}
	if cfg.only != nil {
		args = append(args, "-only", strings.Join(numbers, "|"))
	}
	if cfg.quick {
		args = append(args, "-quick")
	}
	return exec.CommandContext(ctx, filepath.Join(cfg.bin, packages[numbers[0][0]]), args...)
}

// packages are the programs that measure the numbers with a letter.
var packages = map[byte]string{'B': "budgets", 'S': "scaling", 'T': "taskqueue"}

// build builds a program beside this one, if it is one of bench.
func build(ctx context.Context, cfg config, numbers []string) error {
	name, ok := packages[numbers[0][0]]
	if !ok {
		return nil
	}
	cmd := exec.CommandContext(ctx, "go", "-C", "bench", "build", "-o", filepath.Join(cfg.bin, name), "./"+name)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}

// locksTest measures by tests, since the servers of package locks are there for tests.
func locksTest(ctx context.Context, _ config, numbers []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", "-C", "bench", "test", "-count=1", "-timeout", "40m", "-run", tests(lockTests, numbers), "-v", "./locks")
	cmd.Env = append(os.Environ(), "BENCH_RECORDS=1")
	return cmd
}

// kvTest measures by tests of another module: the recipes are internal to kvqueue.
func kvTest(ctx context.Context, _ config, numbers []string) *exec.Cmd {
	return exec.CommandContext(ctx, "go", "-C", "kvqueue/etcdtest", "test", "-tags", "kvbudgets", "-count=1", "-timeout", "20m", "-run", tests(kvTests, numbers), "-v", "./budgets")
}

func tests(of map[string]string, numbers []string) string {
	var names []string
	for _, n := range numbers {
		names = append(names, of[n])
	}
	slices.Sort(names)
	return "^(" + strings.Join(slices.Compact(names), "|") + ")$"
}

// missing says which command a program needs and has not.
func (p program) missing() string {
	for _, server := range p.servers {
		path := os.Getenv("PATH") + string(os.PathListSeparator) + "/usr/sbin"
		if home, err := os.UserHomeDir(); err == nil {
			path += string(os.PathListSeparator) + filepath.Join(home, "go", "bin")
		}
		if !slices.ContainsFunc(filepath.SplitList(path), func(dir string) bool {
			_, err := os.Stat(filepath.Join(dir, server))
			return err == nil
		}) {
			return server + " is not installed, which tools/needs.sh does"
		}
	}
	return ""
}

// measureAll runs the programs that are to measure something, one after another, and tells what they say.
func measureAll(ctx context.Context, cfg config, tell func(measure.Record)) error {
	some := false
	for _, p := range programs {
		numbers := p.chosen(cfg.only)
		if len(numbers) == 0 {
			continue
		}
		if !some {
			measure.PrintHeader(os.Stdout)
			some = true
		}
		ran := measure.Begin(p.name, cfg.quick)
		if ran.Missing = p.missing(); cfg.quick && cfg.only == nil && len(p.servers) > 0 {
			ran.Missing = "a quick run starts no servers"
		}
		var begin time.Time
		if ran.Missing == "" {
			if err := build(ctx, cfg, numbers); err != nil {
				return fmt.Errorf("%s does not compile: %w", p.name, err)
			}
			ran.Load, begin = measure.Load(), time.Now()
			if err := p.run(ctx, cfg, numbers, tell); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
		if ran.Missing == "" {
			ran.Took = time.Since(begin).Seconds()
		}
		tell(measure.Record{Ran: &ran})
	}
	if !some {
		return errors.New("nothing has such a number")
	}
	return ctx.Err()
}

// run runs a program to its end.
func (p program) run(ctx context.Context, cfg config, numbers []string, tell func(measure.Record)) error {
	cmd := p.command(ctx, cfg, numbers)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = measure.Read(out, tell, func(line string) {
		if p.parse == nil {
			return
		}
		for _, row := range p.parse(line) {
			tell(measure.Record{Row: &row})
		}
	})
	_, _ = io.Copy(io.Discard, out)
	return errors.Join(err, cmd.Wait())
}

// A line of the tables of kvqueue: etcd's recipe.Queue, 300 items   8 consumers   480 items/s  conflicts 0.2 %  max/min 1.10
// And the line below the table.
var (
	kvLine  = regexp.MustCompile(`^(.*\S) +(\d+) consumers +(\d+) items/s  conflicts +(.*\S)  max/min ([0-9.]+)$`)
	kvTimes = regexp.MustCompile(`^K1: one handle has ([0-9.]+) times the race at 32 consumers \((\d+)\), 8 handles ([0-9.]+) times \((\d+)\)$`)
)

// parseKV makes rows of a line that the budgets of kvqueue print. Each is measured once.
func parseKV(line string) []measure.Row {
	if m := kvTimes.FindStringSubmatch(line); m != nil {
		times := func(what, got, budget string) measure.Row {
			return measure.Row{
				ID: "K1", What: "32 consumers, " + what + ", beside the race for the head", Unit: "×",
				Ours: measure.Sample{parsed(got)}, Budget: measure.AtLeast(parsed(budget)), Once: true,
			}
		}
		return []measure.Row{times("one handle", m[1], m[2]), times("8 handles", m[3], m[4])}
	}
	m := kvLine.FindStringSubmatch(line)
	if m == nil {
		return nil
	}
	what := fmt.Sprintf("%s, %s consumers; max/min %s", m[1], m[2], m[5])
	if m[4] != "-" {
		what += ", conflicts " + m[4]
	}
	id := "K1"
	if number, rest, ok := strings.Cut(what, ": "); ok && kvTests[number] != "" {
		id, what = number, rest
	}
	return []measure.Row{{ID: id, What: what, Unit: "/s", Ours: measure.Sample{parsed(m[3])}, Once: true}}
}

// parsed is a number that a regular expression has found.
func parsed(number string) float64 {
	v, err := strconv.ParseFloat(number, 64)
	must(err)
	return v
}
