package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/riverqueue/river"

	"github.com/ambit-go/ambit/bench/internal/measure"
	"github.com/ambit-go/ambit/taskqueue"
)

// postgresFetchers is how many workers, each with a store of its own as a process has, claim from one queue in T9.
const postgresFetchers = 16

// measurePostgres is T9: ours and river, each in an empty database of one server for each turn.
func measurePostgres(b *bench) {
	p := startPostgres()
	defer p.stop()
	enqueueOnPostgres(b, p)
	workOnPostgres(b, p)
	lateOnPostgres(b, p)
}

// besideRiver has ours and river take turns with n tasks, and tells how many times as many a second we do.
func besideRiver(b *bench, what string, times float64, n int, ours func(n int) time.Duration, riverN int, peer func(n int) time.Duration) {
	took := measure.Turns(b.rounds, func() float64 { return float64(n) / ours(n).Seconds() }, func() float64 { return float64(riverN) / peer(riverN).Seconds() })
	b.tell(measure.Row{ID: "T9", What: "PostgreSQL: " + what, Peer: "river", Unit: "/s", Ours: took[0], Theirs: took[1], Ratio: true, Budget: measure.AtLeast(times)})
}

func enqueueOnPostgres(b *bench, p *postgres) {
	ours := func(each int) func(n int) time.Duration {
		return func(n int) time.Duration {
			q, _, stop := p.ambit(b.ctx)
			defer stop()
			return together(sqliteCallers, n/each, func(int) { enqueueAll(b, q, each, nil) })
		}
	}
	one := func(n int) time.Duration {
		r, stop := p.river(b.ctx)
		defer stop()
		return together(sqliteCallers, n, func(int) {
			_, err := r.client.Insert(b.ctx, riverArgs{payload}, nil)
			must(err)
		})
	}
	many := func(n int) time.Duration {
		r, stop := p.river(b.ctx)
		defer stop()
		return together(sqliteCallers, n/batch, func(int) {
			_, err := r.client.InsertManyFast(b.ctx, riverJobs(batch))
			must(err)
		})
	}
	besideRiver(b, fmt.Sprintf("enqueue, one a call, %d goroutines", sqliteCallers), 3, 10_000, ours(1), 2000, one)
	besideRiver(b, fmt.Sprintf("enqueue, %d a call, %d goroutines; river by COPY", batch, sqliteCallers), 1.5, 40_000, ours(batch), 20_000, many)
}

func workOnPostgres(b *bench, p *postgres) {
	const n = 10_000
	besideRiver(b, fmt.Sprintf("claim and settle, one fetcher, concurrency %d", postgresWorkers), 1.5, n, func(n int) time.Duration {
		q, _, stop := p.ambit(b.ctx)
		defer stop()
		fill(b, q, n, nil)
		return workOff(b, q, n, postgresWorkers)
	}, n, func(n int) time.Duration {
		r, stop := p.river(b.ctx)
		defer stop()
		r.fill(b.ctx, n)
		return r.workOff(b.ctx, n)
	})
	rate := measure.Turns(b.rounds, func() float64 { return n / fetchedByMany(b, p, n).Seconds() })
	b.tell(measure.Row{ID: "T9", What: fmt.Sprintf("PostgreSQL: claim and settle, %d fetchers", postgresFetchers), Unit: "/s", Ours: rate[0], Budget: measure.AtLeast(3000)})
}

// fetchedByMany returns how long many fetchers take together to run n tasks.
func fetchedByMany(b *bench, p *postgres, n int) time.Duration {
	q, pool, stop := p.ambit(b.ctx)
	defer stop()
	fill(b, q, n, nil)
	c := newCountdown(b, n)
	defer c.stop()
	var all sync.WaitGroup
	start := time.Now()
	for range postgresFetchers {
		all.Go(func() {
			own, closed := ambitOn(c.ctx, pool)
			defer closed()
			must(own.Work(c.ctx, taskqueue.Handlers{"t": c.handle}, taskqueue.Concurrency(postgresWorkers/postgresFetchers)))
		})
	}
	all.Wait()
	took := time.Since(start)
	c.check(q)
	return took
}

// lateOnPostgres is the lateness of T9. River looks every 5 s for jobs whose time has come, unless another job comes.
func lateOnPostgres(b *bench, p *postgres) {
	q, _, stop := p.ambit(b.ctx)
	ours := lateness(b, q)
	stop()
	r, stop := p.river(b.ctx)
	peer := r.lateness(b)
	stop()
	if b.ctx.Err() != nil {
		return
	}
	tellLateness(b, "T9", "PostgreSQL: ", "river", 50, ours, peer)
}

func (r *riverPostgres) lateness(b *bench) []time.Duration {
	far := riverJobs(1000)
	for range waiting / len(far) {
		for i := range far {
			far[i].InsertOpts = &river.InsertOpts{ScheduledAt: time.Now().Add(time.Hour)}
		}
		_, err := r.client.InsertManyFast(b.ctx, far)
		must(err)
	}
	times := dueTimes()
	due := riverJobs(len(times))
	for i := range due {
		due[i].InsertOpts = &river.InsertOpts{ScheduledAt: times[i]}
	}
	_, err := r.client.InsertManyFast(b.ctx, due)
	must(err)
	ended := make(chan struct{})
	l := &lates{end: func() { close(ended) }}
	r.handle = func(job *riverJob) { l.note(time.Since(job.ScheduledAt)) }
	defer r.work(b.ctx)()
	select {
	case <-ended:
	case <-b.ctx.Done():
	}
	return l.all
}
