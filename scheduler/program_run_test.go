package scheduler_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"golang.org/x/sync/semaphore"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/scheduler"
)

// worker decodes a worker.
func (r *progRun) worker(u *progUser, s *scheduler.Scheduler, ctx context.Context, recovers bool) {
	w := &progWorker{r: r, last: make(map[int]int)}
	opts := []scheduler.WorkerOption{scheduler.Batch(1 + u.next(6))}
	if recovers || u.next(2) == 0 {
		opts = append(opts, scheduler.RecoverPanics(func(*async.PanicError) {}))
	}
	if u.next(6) == 0 {
		opts = append(opts, scheduler.CloseOnPanic())
	}
	if u.next(2) == 0 {
		full := scheduler.Full(u.next(4))
		w.block = full == scheduler.Block
		opts = append(opts, scheduler.Capacity(1+u.next(6), full))
	}
	if w.seen = u.next(2) == 0; w.seen {
		opts = append(opts, scheduler.Observe(func(e scheduler.Event) { w.events[e.Outcome].Add(1) }))
	}
	w.w = s.NewWorker(ctx, opts...)
	r.workers = append(r.workers, w)
}

// pool decodes the pool. Those that do not recover panics say so.
func (r *progRun) pool(u *progUser) (ex scheduler.Executor, recovers bool) {
	r.exits = true
	switch u.next(5) {
	case 0:
		return scheduler.Goroutines(), true
	case 1:
		return scheduler.Limited(semaphore.NewWeighted(1)), true
	case 2:
		return oneSlotRecovering(), false
	case 3:
		return refuseEvery(2 + u.next(5)), false
	default:
		r.exits, r.inline = false, true
		return scheduler.Inline(), true
	}
}

// run runs the program and returns what was wrong.
func (r *progRun) run(t *testing.T, data []byte) []string {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		defer bound(data)()
		ctx, _ := asynctest.Root(context.Background())
		u := &progUser{data: data}
		ex, recovers := r.pool(u)
		s := scheduler.New(ex)
		for range 1 + u.next(3) {
			r.worker(u, s, ctx, recovers)
		}
		users := make([]*progUser, 1+u.next(4))
		for i := range users {
			part := len(u.data) / len(users)
			users[i] = &progUser{r: r, id: i, data: u.data[i*part : (i+1)*part]}
		}
		var all sync.WaitGroup
		for _, u := range users {
			all.Go(func() {
				for len(u.data) > 0 {
					u.step(ctx)
				}
			})
		}
		all.Wait()
		for _, w := range r.workers {
			if err := w.w.Drain(ctx); err != nil {
				r.fault("Drain: %v", err)
			}
		}
		synctest.Wait()
		for _, u := range users {
			for _, future := range u.futures {
				if _, _, ok := future.Result(); !ok {
					r.fault("a future has not settled")
				}
			}
		}
		r.check(s)
	})
	return r.wrong
}

func progBytes(seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 17))
	data := make([]byte, 20+rng.IntN(1_500))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	return data
}

func TestWhateverHappensSomeThingsHold(t *testing.T) {
	for seed := range uint64(2_000 / scheduler.RaceFactor) {
		if wrong := new(progRun).run(t, progBytes(seed)); len(wrong) > 0 {
			t.Fatalf("seed %d: %v", seed, wrong)
		}
	}
}

func FuzzProgram(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(progBytes(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if wrong := new(progRun).run(t, data[:min(len(data), 2_000)]); len(wrong) > 0 {
			t.Fatal(wrong)
		}
	})
}
