package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/locks"
)

// A measure is a line of bench. Times are in microseconds.
type measure struct {
	What  string `json:"what"`
	N     int    `json:"n"`
	P50   int64  `json:"p50_us"`
	P99   int64  `json:"p99_us"`
	Total int64  `json:"total_us"`
}

// bench measures the user's own store on locks of its own, for a few seconds.
func bench(ctx context.Context, p *program, _ *line) error {
	key := fmt.Sprintf("db-locks bench %d", time.Now().UnixNano())
	defer func() { _ = p.m.Delete(context.WithoutCancel(ctx), key, "") }()
	if err := p.benchAlone(ctx, key); err != nil {
		return err
	}
	for _, workers := range []int{8, 64} {
		if err := p.benchTogether(ctx, key, workers); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) measured(what string, took []time.Duration, total time.Duration) error {
	slices.Sort(took)
	at := func(percent int) int64 { return took[(len(took)-1)*percent/100].Microseconds() }
	m := measure{what, len(took), at(50), at(99), total.Microseconds()}
	return p.print(m, "%-44s n=%-6d p50=%-10v p99=%v", m.What, m.N, time.Duration(m.P50)*time.Microsecond, time.Duration(m.P99)*time.Microsecond)
}

// benchAlone takes a lock that nobody else wants, and gives it back.
func (p *program) benchAlone(ctx context.Context, key string) error {
	var took []time.Duration
	begin := time.Now()
	for len(took) < 2000 && (len(took) < 10 || time.Since(begin) < 2*time.Second) {
		one := time.Now()
		if err := p.m.With(ctx, key, func(context.Context) error { return nil }); err != nil {
			return err
		}
		took = append(took, time.Since(one))
	}
	return p.measured("take and give back, nobody else", took, time.Since(begin))
}

// benchTogether has workers take a lock in turns and hold it for 2 ms, and measures how long
// they wait.
func (p *program) benchTogether(ctx context.Context, key string, workers int) error {
	const hold = 2 * time.Millisecond
	waits := make([][]time.Duration, workers)
	begin := time.Now()
	err := async.Scope(ctx, func(ctx context.Context) error {
		for w := range workers {
			async.Go(ctx, func(ctx context.Context) error {
				for len(waits[w]) < 40 && (len(waits[w]) < 3 || time.Since(begin) < 3*time.Second) {
					asked := time.Now()
					err := p.m.With(ctx, key, func(ctx context.Context) error {
						waits[w] = append(waits[w], time.Since(asked))
						return async.Sleep(ctx, hold)
					}, locks.Wait(time.Minute))
					if err != nil {
						return err
					}
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return err
	}
	return p.measured(fmt.Sprintf("wait among %d who hold it for %v", workers, hold), slices.Concat(waits...), time.Since(begin))
}
