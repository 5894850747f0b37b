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
	{name: "taskqueue", numbers: numbered("T", 10), servers: []string{"redis-server", "postgres"}, command: built},
	{name: "locks", numbers: slices.Collect(keys(lockTests)), servers: []string{"redis-server", "postgres", "mariadbd", "etcd"}, command: locksTest},
	{name: "kvqueue", numbers: slices.Collect(keys(kvTests)), servers: []string{"etcd"}, command: kvTest},
}

// lockTests and kvTests are the tests that measure a budget.
var (
	lockTests = map[string]string{
		"L1": "TestUncontended", "L2": "TestUncontended", "L3": "TestUncontended", "L4": "TestHandOff",
		"L5": "TestContended|TestAThousandWaiters", "L6": "TestRecovery", "L7": "TestRenewal", "L8": "TestIdle",
	}
	kvTests = map[string]string{
		"K1": "TestTable|TestOrder", "K2": "TestEnqueue", "K3": "TestDepth", "K4": "TestOrder|TestOneProcess", "K5": "TestOrder", "K6": "TestKilled", "K7": "TestManyProcesses",
		"K8": "TestSQLite",
	}
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

// runsAll reports whether all that a program measures is chosen.
func runsAll(name string, only *regexp.Regexp) bool {
	return slices.ContainsFunc(programs, func(p program) bool { return p.name == name && len(p.chosen(only)) == len(p.numbers) })
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
	cmd := exec.CommandContext(ctx, "go", "-C", "kvqueue", "test", "-tags", "kvbudgets", "-count=1", "-timeout", "40m", "-run", tests(kvTests, numbers), "-v", "./internal/etcdtest/budgets")
	cmd.Env = append(os.Environ(), "BENCH_RECORDS=1")
	return cmd
}

func tests(of map[string]string, numbers []string) string {
	var names []string
	for _, n := range numbers {
		names = append(names, strings.Split(of[n], "|")...)
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
		dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // which Debian keeps out of the PATH
		if !slices.ContainsFunc(append(dirs, filepath.SplitList(path)...), func(dir string) bool {
			_, err := os.Stat(filepath.Join(dir, server))
			return err == nil
		}) {
			return server + " is not installed, which tools/needs.sh does"
		}
	}
	return ""
}

// measureAll runs the programs that are to measure something, one after another, and tells what they say. After one that fails it goes on
// with the next, and returns all errors in the end.
func measureAll(ctx context.Context, cfg config, tell func(measure.Record)) error {
	some := false
	var failed []error
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
			err := build(ctx, cfg, numbers)
			ran.Load, begin = measure.Load(), time.Now()
			if err == nil {
				err = p.run(ctx, cfg, numbers, tell)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				ran.Missing = fmt.Sprintf(hasFailed+", and what it had not come to is not here (%v)", err)
				failed = append(failed, fmt.Errorf("%s: %w", p.name, err))
			}
			ran.Took = time.Since(begin).Seconds()
		}
		tell(measure.Record{Ran: &ran})
	}
	if !some {
		return errors.New("nothing has such a number")
	}
	return errors.Join(append(failed, ctx.Err())...)
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
	var said []string // the last lines that are no records
	err = measure.Read(out, tell, func(line string) { said = append(said[max(len(said)-lastLines+1, 0):], line) })
	_, _ = io.Copy(io.Discard, out)
	if err = errors.Join(err, cmd.Wait()); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, strings.Join(said, "\n"))
	}
	return err
}

// hasFailed is how it begins that a program has failed.
const hasFailed = "it has failed"

// lastLines is how much of the output of a program that has failed is shown.
const lastLines = 40
