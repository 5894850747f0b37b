package scheduler_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/scheduler"
)

// check compares everything that can be seen. Nothing moves meanwhile.
func (r *orderRun) check() {
	synctest.Wait()
	m := &r.m
	if now := time.Since(r.start); now != m.now {
		r.fault("it is %v, not %v", now, m.now)
	}
	if r.lie {
		m.log = append([]int{0}, m.log...)
	}
	r.mu.Lock()
	if !slices.Equal(r.log, m.log) {
		r.fault("ran %v, should be %v", r.log, m.log)
	}
	r.mu.Unlock()
	st := r.w.Stats()
	var want scheduler.Stats
	for _, it := range m.tasks {
		switch it.state {
		case scheduler.Done:
			want.Done++
		case scheduler.Cancelled:
			want.Cancelled++
		case scheduler.Rejected:
			want.Rejected++
		case scheduler.Panicked:
			want.Panicked++
		case scheduler.Exited:
			want.Exited++
		}
		if task, ok := r.handles[it.id]; ok && task != (scheduler.Task{}) && task.State() != it.state {
			r.fault("task %d is %v, should be %v", it.id, task.State(), it.state)
		}
	}
	want.Scheduled, want.Pending, want.Delayed = uint64(m.seq), len(m.queue)+len(m.delayed), len(m.delayed)
	want.Running = m.running != nil
	want.Ticks, want.Activations = st.Ticks, st.Activations
	if st != want {
		r.fault("stats %+v, should be %+v", st, want)
	}
	if r.w.Len() != want.Pending || r.w.Closed() != m.refusing {
		r.fault("Len is %d, Closed %v", r.w.Len(), r.w.Closed())
	}
}

// run runs the program and returns what was wrong.
func (r *orderRun) run(t *testing.T) string {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		defer bound(r.data)()
		r.gate = make(chan struct{})
		r.worker(context.Background())
		for len(r.data) > 0 && r.wrong == "" && !r.m.ambiguous {
			if r.step(); !r.m.ambiguous {
				r.check()
			}
		}
		_ = r.w.Close()
		close(r.gate)
		if err := r.w.Wait(context.Background()); err != nil {
			r.fault("Wait: %v", err)
		}
		if st := r.w.Stats(); st.Pending != 0 || st.Running || st.Scheduled != st.Done+st.Cancelled+st.Rejected+st.Panicked+st.Exited {
			r.fault("in the end: %+v", st)
		}
	})
	return r.wrong
}

func orderBytes(seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 13))
	data := make([]byte, 20+rng.IntN(600))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	return data
}

func TestWhatRunsAndWhenIsWhatTheModelSays(t *testing.T) {
	for seed := range uint64(5_000 / scheduler.RaceFactor) {
		data := orderBytes(seed)
		if wrong := (&orderRun{data: data}).run(t); wrong != "" {
			least := fewerBytes(data, func(data []byte) bool { return (&orderRun{data: data}).run(t) != "" })
			t.Fatalf("seed %d: %s\nas small as it gets: %#v: %s", seed, wrong, least, (&orderRun{data: least}).run(t))
		}
	}
}

// fewerBytes leaves out bytes of data for as long as what is left still fails.
func fewerBytes(data []byte, fails func([]byte) bool) []byte {
	for size := len(data) / 2; size > 0; size /= 2 {
		for i := 0; i+size <= len(data); {
			if try := slices.Concat(data[:i], data[i+size:]); fails(try) {
				data = try
			} else {
				i += size
			}
		}
	}
	return data
}

// TestTheOrderModelFindsWhatIsPlanted shows that the check can fail.
func TestTheOrderModelFindsWhatIsPlanted(t *testing.T) {
	if (&orderRun{data: orderBytes(1), lie: true}).run(t) == "" {
		t.Error("a task too few was not found")
	}
}

func FuzzOrder(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(orderBytes(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if wrong := (&orderRun{data: data[:min(len(data), 800)]}).run(t); wrong != "" {
			t.Fatal(wrong)
		}
	})
}
