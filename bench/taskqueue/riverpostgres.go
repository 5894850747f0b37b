package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

type riverJob = river.Job[riverArgs]

// A riverPostgres is a queue of river in an empty database.
type riverPostgres struct {
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
	handle func(*riverJob)
}

func (p *postgres) river(ctx context.Context) (*riverPostgres, func()) {
	pool, drop := p.pool(ctx)
	driver, silent := riverpgxv5.New(pool), slog.New(slog.DiscardHandler)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: silent})
	must(err)
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	must(err)
	r := &riverPostgres{pool: pool, handle: func(*riverJob) {}}
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *riverJob) error { r.handle(job); return nil }))
	r.client, err = river.NewClient(driver, &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: postgresWorkers}}, Workers: workers,
		FetchCooldown: time.Millisecond, Logger: silent,
	})
	must(err)
	return r, drop
}

// riverJobs are n jobs to insert.
func riverJobs(n int) []river.InsertManyParams {
	jobs := make([]river.InsertManyParams, n)
	for i := range jobs {
		jobs[i].Args = riverArgs{payload}
	}
	return jobs
}

// fill adds n jobs.
func (r *riverPostgres) fill(ctx context.Context, n int) {
	for left := n; left > 0; left -= 1000 {
		_, err := r.client.InsertManyFast(ctx, riverJobs(min(left, 1000)))
		must(err)
	}
}

// work has a worker run until what it returns is called.
func (r *riverPostgres) work(ctx context.Context) (stop func()) {
	must(r.client.Start(ctx))
	return func() { must(r.client.Stop(context.Background())) }
}

// workOff runs n jobs that are there, and returns how long it took from the start of the client until the last handler
// had begun.
func (r *riverPostgres) workOff(ctx context.Context, n int) time.Duration {
	var done atomic.Int64
	all := make(chan time.Time, 1)
	r.handle = func(*riverJob) {
		if done.Add(1) == int64(n) {
			all <- time.Now()
		}
	}
	start := time.Now()
	defer r.work(ctx)()
	return (<-all).Sub(start)
}
