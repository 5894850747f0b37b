package main

import (
	"context"
	"database/sql"
	"log/slog"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	_ "modernc.org/sqlite"
)

// A riverQueue is a queue of river in a SQLite file, with the durability of ours: what was acknowledged is on the disk. It
// has one connection, as river's documentation says.
type riverQueue struct {
	db      *sql.DB
	client  *river.Client[*sql.Tx]
	started bool
	handle  func()
}

type riverArgs struct{ Payload []byte }

func (riverArgs) Kind() string { return "task" }

func openRiver(ctx context.Context, path string) *riverQueue {
	pragmas := url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(FULL)", "busy_timeout(10000)"}}
	db, err := sql.Open("sqlite", "file:"+path+"?"+pragmas.Encode())
	must(err)
	db.SetMaxOpenConns(1)
	driver := riversqlite.New(db)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	must(err)
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	must(err)
	r := &riverQueue{db: db}
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(context.Context, *river.Job[riverArgs]) error { r.handle(); return nil }))
	r.client, err = river.NewClient(driver, &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: sqliteCallers}}, Workers: workers,
		FetchCooldown: time.Millisecond, FetchPollInterval: time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	must(err)
	return r
}

func (r *riverQueue) stop() {
	if r.started {
		must(r.client.Stop(context.Background()))
	}
	must(r.db.Close())
}

// insertEach adds n jobs, one a call, and returns how long that took.
func (r *riverQueue) insertEach(ctx context.Context, n int) time.Duration {
	return together(sqliteCallers, n, func(int) {
		_, err := r.client.Insert(ctx, riverArgs{payload}, nil)
		must(err)
	})
}

// workOff adds n jobs and runs them, and returns how long that took from the start of the client until the last handler
// had begun.
func (r *riverQueue) workOff(ctx context.Context, n int) time.Duration {
	jobs := make([]river.InsertManyParams, n)
	for i := range jobs {
		jobs[i].Args = riverArgs{payload}
	}
	_, err := r.client.InsertMany(ctx, jobs)
	must(err)
	var done atomic.Int64
	all := make(chan time.Time, 1)
	r.handle = func() {
		if done.Add(1) == int64(n) {
			all <- time.Now()
		}
	}
	start := time.Now()
	must(r.client.Start(ctx))
	r.started = true
	return (<-all).Sub(start)
}
