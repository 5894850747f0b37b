package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ambit-go/ambit/bench/internal/measure"
	"github.com/ambit-go/ambit/taskqueue"
)

// measureEnqueueTx is T10: what a transaction takes that writes a row and adds a task, beside one that writes the row alone and
// one that adds a job of river. In each turn the worker of its side has nothing to do and sleeps, so that it is to be told
// of the task, or it is awake, since it has more to do than its one handler comes to.
func measureEnqueueTx(b *bench) {
	p := startPostgres()
	defer p.stop()
	for _, workers := range []struct {
		are   string
		tasks int           // which the worker has to do
		pause time.Duration // between two transactions
	}{{"awake", 2000, 0}, {"asleep", 0, 20 * time.Millisecond}} {
		took := measure.Turns(b.rounds, func() float64 { return ambitTx(b, p, workers.tasks, workers.pause) },
			func() float64 { return bareTx(b, p, workers.pause) },
			func() float64 { return riverTx(b, p, workers.tasks, workers.pause) })
		if b.ctx.Err() != nil {
			return
		}
		for i, peer := range []struct {
			name  string
			limit float64
		}{{"the bare transaction", 1.8}, {"river's InsertTx", 0.9}} {
			b.tell(measure.Row{
				ID: "T10", What: "PostgreSQL: EnqueueTx, workers " + workers.are, Peer: peer.name, Unit: "µs",
				Ours: took[0], Theirs: took[i+1], Ratio: true, Budget: measure.AtMost(peer.limit),
			})
		}
	}
}

// slowly is a handler that keeps its worker awake.
func slowly(ctx context.Context, _ *taskqueue.Claim) error {
	select {
	case <-ctx.Done():
	case <-time.After(5 * time.Millisecond):
	}
	return nil
}

func ambitTx(b *bench, p *postgres, tasks int, pause time.Duration) (micros float64) {
	q, pool, stop := p.ambit(b.ctx)
	defer stop()
	fill(b, q, tasks, nil)
	ctx, cancel := context.WithCancel(b.ctx)
	ended := make(chan error)
	go func() { ended <- q.Work(ctx, taskqueue.Handlers{"t": slowly}, taskqueue.Concurrency(1)) }()
	micros = transactions(b, pool, pause, func(tx pgx.Tx) error {
		_, err := q.EnqueueTx(b.ctx, tx, taskqueue.Task{Type: "t", Payload: payload})
		return err
	})
	cancel()
	must(<-ended)
	return micros
}

func bareTx(b *bench, p *postgres, pause time.Duration) float64 {
	pool, drop := p.pool(b.ctx)
	defer drop()
	return transactions(b, pool, pause, func(pgx.Tx) error { return nil })
}

func riverTx(b *bench, p *postgres, tasks int, pause time.Duration) float64 {
	r, stop := p.river(b.ctx)
	defer stop()
	r.fill(b.ctx, tasks)
	r.handle = func(*riverJob) { time.Sleep(5 * time.Millisecond) }
	defer r.work(b.ctx)()
	return transactions(b, r.pool, pause, func(tx pgx.Tx) error {
		_, err := r.client.InsertTx(b.ctx, tx, riverArgs{payload}, nil)
		return err
	})
}

// transactions returns how many microseconds a transaction takes that writes a row of the user's own and does more.
func transactions(b *bench, pool *pgxpool.Pool, pause time.Duration, more func(tx pgx.Tx) error) float64 {
	const warm, n = 20, 100
	_, err := pool.Exec(b.ctx, "CREATE TABLE own (id bigint PRIMARY KEY, said text)")
	must(err)
	var took time.Duration
	for i := range warm + n {
		if i == warm {
			took = 0
		}
		time.Sleep(pause)
		start := time.Now()
		must(pgx.BeginFunc(b.ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(b.ctx, "INSERT INTO own VALUES ($1, $2)", i, fmt.Sprint("row ", i)); err != nil {
				return err
			}
			return more(tx)
		}))
		took += time.Since(start)
	}
	return took.Seconds() * 1e6 / n
}
