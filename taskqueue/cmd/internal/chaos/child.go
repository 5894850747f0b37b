//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/cmd/internal/chaos/ledger"
	"github.com/ambit-go/ambit/taskqueue/cmd/internal/chaos/plan"
	"github.com/ambit-go/ambit/taskqueue/internal/clock"
)

const (
	queueName = "chaos"
	places    = 8
)

// childEnv has the role of a process that this program has started, as JSON.
const childEnv = "TASKQUEUE_CHAOS"

// A role is what a process of a run does.
type role struct {
	Do    string // worker or producer
	Name  string // of its journal
	URL   string
	Dir   string // of the journals
	Seed  uint64
	Clock int  // put forward by, in s
	Kills bool // tasks may kill their worker
}

// play is the main function of a process that has a role.
func play(text string) error {
	var r role
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	clock.Set(time.Duration(r.Clock) * time.Second)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go obey()
	j, err := ledger.Create(r.Dir, r.Name)
	if err != nil {
		return err
	}
	store, err := r.open(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil // told to stop before there was a store
		}
		return err
	}
	if r.Do == "worker" {
		err = r.work(ctx, store, j)
	} else {
		err = r.produce(ctx, store, j)
	}
	return errors.Join(err, store.Close(), j.Close())
}

// obey does what comes on stdin. Its end is that of the process that has started us.
func obey() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if s, is := strings.CutPrefix(lines.Text(), "clock "); is {
			n, _ := strconv.Atoi(s)
			clock.Set(time.Duration(n) * time.Second)
		}
	}
	os.Exit(3)
}

// open opens the store as soon as that is possible.
func (r *role) open(ctx context.Context) (taskqueue.Store, error) {
	for {
		s, err := taskqueue.Open(ctx, r.URL)
		if err == nil || ctx.Err() != nil {
			return s, err
		}
		rest(ctx, 50*time.Millisecond)
	}
}

func (r *role) work(ctx context.Context, s taskqueue.Store, j *ledger.Journal) error {
	q, err := taskqueue.New(&ledger.Recorder{Store: s, Journal: j})
	if err != nil {
		return err
	}
	p := &plan.Player{Journal: j, Places: places, Kill: func() {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}}
	err = q.In(queueName).Work(ctx, p.Handlers(), taskqueue.Concurrency(places), taskqueue.Lease(plan.Lease),
		taskqueue.ShutdownGrace(300*time.Millisecond), taskqueue.WorkerName(r.Name),
		taskqueue.Backoff(func(int) time.Duration { return 100 * time.Millisecond }))
	text := ""
	if err != nil {
		text = err.Error()
	}
	// The store may be down when a worker is told to stop: then it says so.
	var unsettled *taskqueue.UnsettledError
	if errors.As(err, &unsettled) {
		err = nil
	}
	return errors.Join(err, j.Write(ledger.Entry{Kind: ledger.Returned, Text: text}))
}
