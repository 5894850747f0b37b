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
	"github.com/ambit-go/ambit/taskqueue/filestore"
)

// fileCallers is how many goroutines use the file store.
const fileCallers = 64

// measureFile is T8.
func measureFile(b *bench) {
	const n = 30_000
	dir, err := os.MkdirTemp("", "taskqueue")
	must(err)
	defer func() { must(os.RemoveAll(dir)) }()
	var added, runs []float64
	for i := range b.rounds {
		q, stop := openFile(filepath.Join(dir, fmt.Sprint(i)))
		took := together(fileCallers, n, func(int) {
			_, err := q.Enqueue(b.ctx, taskqueue.Task{Type: "t", Payload: payload})
			must(err)
		})
		added = append(added, n/took.Seconds())
		runs = append(runs, n/workOff(b, q, n, fileCallers).Seconds())
		stop()
	}
	a, r := quantile(added, 0.5), quantile(runs, 0.5)
	b.table.row("T8", fmt.Sprintf("in a file: enqueue, one a call, %d goroutines", fileCallers), perSecond(a), "", perSecond(a), "20000 /s", kept(a >= 20_000))
	b.table.row("T8", fmt.Sprintf("in a file: claim and settle, concurrency %d", fileCallers), perSecond(r), "", perSecond(r), "10000 /s", kept(r >= 10_000))
	lost, of := lostByKill(b, filepath.Join(dir, "killed"))
	b.table.row("T8", fmt.Sprintf("in a file: lost of %d acknowledged, after kill -9", of), fmt.Sprint(lost), "", fmt.Sprint(lost), "0", kept(lost == 0))
}

func openFile(path string) (*taskqueue.Queue, func()) {
	store, err := filestore.Open(path)
	must(err)
	q, err := taskqueue.New(store)
	must(err)
	return q, func() { must(store.Close()) }
}

// addToFile is a child that enqueues until it is killed, and writes the ids that were
// acknowledged.
func addToFile(args []string) {
	q, _ := openFile(args[0])
	out := bufio.NewWriter(os.Stdout)
	var mu sync.Mutex
	together(fileCallers, 1<<30, func(int) {
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
	c := startChild("add-file", path)
	var ids []string
	for start := time.Now(); time.Since(start) < time.Second && c.out.Scan(); {
		ids = append(ids, c.out.Text())
	}
	must(c.cmd.Process.Kill())
	for c.out.Scan() {
		ids = append(ids, c.out.Text())
	}
	_ = c.cmd.Wait()
	q, stop := openFile(path)
	defer stop()
	for _, id := range ids {
		if _, err := q.Get(b.ctx, id); err != nil {
			lost++
		}
	}
	return lost, len(ids)
}
