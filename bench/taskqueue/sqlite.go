package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/sqlstore"
)

// sqliteCallers is how many goroutines use the SQLite file.
const sqliteCallers = 64

// measureSQLite is T8.
func measureSQLite(b *bench) {
	const n = 30_000
	dir, err := os.MkdirTemp("", "taskqueue")
	must(err)
	defer func() { must(os.RemoveAll(dir)) }()
	var added, runs []float64
	for i := range b.rounds {
		q, stop := openSQLite(filepath.Join(dir, fmt.Sprint(i)))
		took := together(sqliteCallers, n, func(int) {
			_, err := q.Enqueue(b.ctx, taskqueue.Task{Type: "t", Payload: payload})
			must(err)
		})
		added = append(added, n/took.Seconds())
		runs = append(runs, n/workOff(b, q, n, sqliteCallers).Seconds())
		stop()
	}
	a, r := quantile(added, 0.5), quantile(runs, 0.5)
	b.table.row("T8", fmt.Sprintf("SQLite: enqueue, one a call, %d goroutines", sqliteCallers), perSecond(a), "", perSecond(a), "15000 /s", kept(a >= 15_000))
	b.table.row("T8", fmt.Sprintf("SQLite: claim and settle, concurrency %d", sqliteCallers), perSecond(r), "", perSecond(r), "8000 /s", kept(r >= 8_000))
	lost, of := lostByKill(b, filepath.Join(dir, "killed"))
	b.table.row("T8", fmt.Sprintf("SQLite: lost of %d acknowledged, after kill -9", of), fmt.Sprint(lost), "", fmt.Sprint(lost), "0", kept(lost == 0))
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
