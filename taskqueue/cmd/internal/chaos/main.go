//go:build linux

// Command chaos runs workers, producers and stores as processes, breaks them and what
// is between them in every way that docs/taskqueue.md lists, and has an auditor
// compare in the end what they have written down with what is stored.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ambit-go/ambit/taskqueue/cmd/internal/chaos/audit"
)

// silent writes no log.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func main() {
	if text := os.Getenv(childEnv); text != "" {
		if err := play(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	d := flag.Duration("time", 20*time.Second, "how long faults are injected; each is injected once at least")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "decides the faults, their order, and the tasks")
	only := flag.String("only", "", "only worlds with this in their names: redis-always, redis-everysec, sqlite")
	processes := flag.Int("processes", 5, "of each world, at least two; two fifths are producers")
	keep := flag.Bool("keep", false, "leave what was written down")
	flag.Parse()
	if *processes < 2 {
		fmt.Fprintln(os.Stderr, "chaos: -processes: a world has a worker and a producer at least")
		os.Exit(2)
	}
	redis.SetLogger(silent{}) // that servers cannot be reached is meant
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fmt.Printf("chaos: %v; to have the same faults again: make chaos CHAOS_SEED=%d\n", *d, *seed)
	if !run(ctx, os.Stdout, *d, *processes, *seed, *only, *keep) {
		stop()
		os.Exit(1)
	}
}

// run runs all worlds at the same time, and says what was found.
func run(ctx context.Context, out io.Writer, d time.Duration, processes int, seed uint64, only string, keep bool) (ok bool) {
	dir, err := os.MkdirTemp("", "chaos")
	if err != nil {
		fmt.Fprintln(out, err)
		return false
	}
	if keep {
		fmt.Fprintln(out, "what is written down:", dir)
	} else {
		defer func() { _ = os.RemoveAll(dir) }()
	}
	worlds, err := build(ctx, processes, seed, dir, only)
	defer func() {
		for _, w := range worlds {
			if err := w.fleet.killAll(); err != nil {
				fmt.Fprintln(out, err)
			}
			w.close()
		}
	}()
	if err != nil {
		fmt.Fprintln(out, err)
		return false
	}
	type result struct {
		r   audit.Report
		err error
	}
	results := make([]chan result, len(worlds))
	for i, w := range worlds {
		if keep {
			if w.trace, err = os.Create(filepath.Join(w.dir, "faults")); err != nil {
				fmt.Fprintln(out, err)
				return false
			}
		}
		results[i] = make(chan result, 1)
		go func() {
			r, err := w.run(ctx, d)
			results[i] <- result{r, err}
		}()
	}
	ok = len(worlds) > 0
	for i, w := range worlds {
		got := <-results[i]
		ok = w.report(out, got.r, got.err) && ok
	}
	if !ok {
		fmt.Fprintf(out, "chaos: there are faults; to have the same again: make chaos CHAOS_SEED=%d\n", seed)
	}
	return ok
}

func build(ctx context.Context, processes int, seed uint64, dir, only string) (worlds []*world, err error) {
	library, err := buildClock(dir)
	if err != nil {
		return nil, err
	}
	for i, one := range []struct {
		name  string
		build func() (*world, error)
	}{
		{"redis-always", func() (*world, error) { return newRedisWorld(ctx, processes, seed, dir, library, "always") }},
		{"redis-everysec", func() (*world, error) { return newRedisWorld(ctx, processes, seed+1, dir, library, "everysec") }},
		{"sqlite", func() (*world, error) { return newSQLiteWorld(ctx, processes, seed+2, dir) }},
	} {
		if !strings.Contains(one.name, only) {
			continue
		}
		w, err := one.build()
		if err != nil {
			return worlds, fmt.Errorf("world %d, %s: %w", i, one.name, err)
		}
		worlds = append(worlds, w)
	}
	return worlds, nil
}

// report says what was done to a world, and what was found.
func (w *world) report(out io.Writer, r audit.Report, err error) (ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(out, "\n%s\n", w.name)
	for _, name := range w.order {
		fmt.Fprintf(out, "  %5d  %s\n", w.injected[name], name)
	}
	for _, m := range w.missing {
		fmt.Fprintf(out, "  not possible here: %s\n", m)
	}
	fmt.Fprintf(out, "  %d tasks acknowledged, %d lost as the settings allow; %d runs, %d of them ended well once more, %d leases ran out, %d handlers lost theirs, %d outcomes came too late\n",
		r.Acknowledged, r.Lost, r.Runs, r.Repeated, r.Crashes, r.LostRuns, r.Stale)
	var faults []string
	if err != nil {
		faults = append(faults, err.Error())
	}
	faults = append(faults, r.Faults...)
	for _, name := range w.order {
		if w.injected[name] == 0 {
			faults = append(faults, "it was never injected: "+name)
		}
	}
	if r.Acknowledged < 50 || r.Runs < 50 {
		faults = append(faults, "there were hardly any tasks: this run shows nothing")
	}
	fmt.Fprintf(out, "  %d faults\n", len(faults))
	for i, f := range faults {
		if i == 40 {
			fmt.Fprintf(out, "    and %d more\n", len(faults)-i)
			break
		}
		fmt.Fprintf(out, "    %s\n", f)
	}
	return len(faults) == 0
}
