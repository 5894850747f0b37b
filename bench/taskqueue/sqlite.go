package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ambit-go/ambit/bench/internal/measure"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/sqlstore"
)

// sqliteCallers is how many goroutines use the SQLite file.
const sqliteCallers = 64

// measureSQLite is T8: ours and river, each in a file of its own for each turn.
func measureSQLite(b *bench) {
	const n, riverN = 30_000, 1000
	dir, err := os.MkdirTemp("", "taskqueue")
	must(err)
	defer func() { must(os.RemoveAll(dir)) }()
	files := 0
	file := func() string { files++; return filepath.Join(dir, fmt.Sprint(files)) }
	added := measure.Turns(b.rounds, func() float64 {
		q, stop := openSQLite(file())
		defer stop()
		return n / enqueueEach(b, q, n).Seconds()
	}, func() float64 {
		r := openRiver(b.ctx, file())
		defer r.stop()
		return riverN / r.insertEach(b.ctx, riverN).Seconds()
	})
	ran := measure.Turns(b.rounds, func() float64 {
		q, stop := openSQLite(file())
		defer stop()
		fill(b, q, n, nil)
		return n / workOff(b, q, n, sqliteCallers).Seconds()
	}, func() float64 {
		r := openRiver(b.ctx, file())
		defer r.stop()
		return riverN / r.workOff(b.ctx, riverN).Seconds()
	})
	tellSQLite(b, fmt.Sprintf("SQLite: enqueue, one a call, %d goroutines", sqliteCallers), added, 15_000, 8)
	tellSQLite(b, fmt.Sprintf("SQLite: claim and settle, concurrency %d", sqliteCallers), ran, 8_000, 3)
	lost, of := lostByKill(b, filepath.Join(dir, "killed"))
	b.tell(measure.Row{ID: "T8", What: fmt.Sprintf("SQLite: lost of %d acknowledged, after kill -9", of), Ours: measure.Sample{float64(lost)}, Budget: measure.AtMost(0)})
}

// tellSQLite tells how many a second we do, and how many times as many as river.
func tellSQLite(b *bench, what string, took []measure.Sample, rate, times float64) {
	b.tell(measure.Row{ID: "T8", What: what, Unit: "/s", Ours: took[0], Budget: measure.AtLeast(rate)})
	b.tell(measure.Row{ID: "T8", What: what, Peer: "river", Unit: "/s", Ours: took[0], Theirs: took[1], Ratio: true, Budget: measure.AtLeast(times)})
}

func enqueueEach(b *bench, q *taskqueue.Queue, n int) time.Duration {
	return together(sqliteCallers, n, func(int) {
		_, err := q.Enqueue(b.ctx, taskqueue.Task{Type: "t", Payload: payload})
		must(err)
	})
}

func openSQLite(path string) (*taskqueue.Queue, func()) {
	store, err := sqlstore.OpenFile(context.Background(), path)
	must(err)
	q, err := taskqueue.New(store)
	must(err)
	return q, func() { must(store.Close()) }
}

// addToSQLite is a child that enqueues until it is killed, and writes the ids that were
// acknowledged.
func addToSQLite(args []string) {
	q, _ := openSQLite(args[0])
	out := bufio.NewWriter(os.Stdout)
	var mu sync.Mutex
	together(sqliteCallers, 1<<30, func(int) {
		id, err := q.Enqueue(context.Background(), taskqueue.Task{Type: "t", Payload: payload})
		must(err)
		mu.Lock()
		defer mu.Unlock()
		_, _ = fmt.Fprintln(out, id)
		must(out.Flush())
	})
}

// lostByKill kills a process in the middle and returns how many tasks that were
// acknowledged are not in the file.
func lostByKill(b *bench, path string) (lost, of int) {
	c := startChild("add-sqlite", path)
	var ids []string
	for start := time.Now(); time.Since(start) < time.Second && c.out.Scan(); {
		ids = append(ids, c.out.Text())
	}
	must(c.cmd.Process.Kill())
	for c.out.Scan() {
		ids = append(ids, c.out.Text())
	}
	_ = c.cmd.Wait()
	q, stop := openSQLite(path)
	defer stop()
	for _, id := range ids {
		if _, err := q.Get(b.ctx, id); err != nil {
			lost++
		}
	}
	return lost, len(ids)
}
