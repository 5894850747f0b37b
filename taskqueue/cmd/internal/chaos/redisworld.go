//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/cmd/internal/chaos/ledger"
	"github.com/ambit-go/ambit/taskqueue/cmd/internal/chaos/plan"
	"github.com/ambit-go/ambit/taskqueue/redisstore"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// everysec is what a server with this setting may lose: what was written in the last
// second, and what it has not written while it waited for the disk, for up to two.
const everysec = 2 * time.Second

// A redisWorld is a Redis server behind a proxy.
type redisWorld struct {
	*world
	s     *server
	p     *proxy
	disk  *disk
	probe *redisstore.Store

	mu    sync.Mutex
	sizes []size // of the file, of late
}

// A size is how long the file was at some time.
type size struct {
	at   int64
	name string
	n    int64
}

func newRedisWorld(ctx context.Context, processes int, seed uint64, dir, library, fsync string) (_ *world, err error) {
	w, err := newWorld("redis-"+fsync, seed, dir)
	if err != nil {
		return nil, err
	}
	r := &redisWorld{world: w}
	if r.disk, err = newDisk(filepath.Join(w.dir, "disk")); err != nil {
		return nil, err
	}
	if r.s, err = newServer(w.dir, r.disk.dir, fsync, library); err != nil {
		return nil, err
	}
	if err := r.s.start(ctx); err != nil {
		return nil, err
	}
	if r.p, err = newProxy(r.s.socket); err != nil {
		return nil, err
	}
	w.fleet = newFleet(w.journals(), "redis://"+r.p.addr()+"/0", processes, seed, true)
	w.fleet.skewed = true
	w.open = func(ctx context.Context) (taskqueue.Store, error) { return redisstore.New(ctx, r.s.client) }
	w.advance = r.s.setClock
	w.left = r.left
	w.mend = r.mend
	w.close = r.end
	if r.probe, err = redisstore.New(ctx, r.s.client); err != nil {
		return nil, err
	}
	w.decks = [][]fault{w.faultsOfProcesses(), r.faultsOfServer()}
	if fsync == "always" {
		w.decks[1] = append(w.decks[1],
			fault{"the clock of the server put forward or back by an hour", r.jump},
			fault{"a torn write at the end of the append-only file", r.torn},
			fault{"a failover to a replica, and back", r.failover})
	} else {
		w.decks[1] = append(w.decks[1], fault{"an end of power: the append-only file as it was a second ago", r.powerCut})
		go r.watch(ctx)
	}
	if r.disk.err == nil {
		w.decks[1] = append(w.decks[1], fault{"a full disk", r.full})
	} else {
		w.missing = append(w.missing, fmt.Sprintf("a full disk: mount: %v", r.disk.err))
	}
	return w, nil
}

func (r *redisWorld) faultsOfServer() []fault {
	return []fault{
		{"kill -9 of redis-server", r.kill},
		{"redis-server suspended", func(ctx context.Context, rng *rand.Rand) (bool, error) {
			stopped := r.s.signal(syscall.SIGSTOP)
			rest(ctx, ms(rng, 50, 2200))
			return stopped && r.s.signal(syscall.SIGCONT), nil
		}},
		{"an outage of two seconds at a settlement", func(ctx context.Context, rng *rand.Rand) (bool, error) {
			return r.p.outage(ctx, plan.Mark, rng.IntN(2) == 0, 2*time.Second), nil
		}},
		{"a settlement that arrives when its lease is over, its worker suspended", r.late},
		{"answers dropped", func(ctx context.Context, rng *rand.Rand) (bool, error) {
			return r.p.during(ctx, &r.p.drop, ms(rng, 50, 500)), nil
		}},
		{"connections reset", func(context.Context, *rand.Rand) (bool, error) { return r.p.reset() > 0, nil }},
		{"silence on all connections", func(ctx context.Context, rng *rand.Rand) (bool, error) {
			return r.p.during(ctx, &r.p.mute, ms(rng, 100, 1800)), nil
		}},
		{"answers delayed", func(ctx context.Context, rng *rand.Rand) (bool, error) {
			before := r.p.hits.Load()
			r.p.delay.Store(int64(ms(rng, 20, 250)))
			rest(ctx, ms(rng, 200, 1500))
			r.p.delay.Store(0)
			return r.p.hits.Load() > before, nil
		}},
		{"SCRIPT FLUSH", func(ctx context.Context, _ *rand.Rand) (bool, error) {
			return true, r.s.client.ScriptFlush(ctx).Err()
		}},
		{"a server out of memory", r.oom},
		{"a server that has become a replica", func(ctx context.Context, rng *rand.Rand) (bool, error) {
			err := r.s.client.Do(ctx, "REPLICAOF", "127.0.0.1", "1").Err()
			rest(ctx, ms(rng, 50, 900))
			return err == nil, errors.Join(err, r.s.client.Do(ctx, "REPLICAOF", "NO", "ONE").Err())
		}},
		{"a server that lacks replicas", func(ctx context.Context, rng *rand.Rand) (bool, error) {
			err := r.s.client.ConfigSet(ctx, "min-replicas-to-write", "1").Err()
			rest(ctx, ms(rng, 50, 900))
			return err == nil, errors.Join(err, r.s.client.ConfigSet(ctx, "min-replicas-to-write", "0").Err())
		}},
	}
}

// dies has the server end by f, and starts it again. A task that may be lost meanwhile is noted.
func (r *redisWorld) dies(ctx context.Context, rng *rand.Rand, f func() error) (bool, error) {
	from := ledger.Now() - int64(everysec)
	if !r.s.kill() {
		return false, r.s.start(ctx)
	}
	err := f()
	rest(ctx, ms(rng, 1, 600))
	if err := errors.Join(err, r.s.start(ctx)); err != nil {
		return false, err
	}
	if r.s.fsync == "everysec" {
		r.loss(from, ledger.Now())
	}
	return true, nil
}

func (r *redisWorld) kill(ctx context.Context, rng *rand.Rand) (bool, error) {
	return r.dies(ctx, rng, func() error { return nil })
}

func (r *redisWorld) torn(ctx context.Context, rng *rand.Rand) (bool, error) {
	return r.dies(ctx, rng, func() error { return errors.Join(r.s.tear(), r.s.fix()) })
}

// jump puts the clock forward or back, and later to where it was. Between two jumps a
// lease must have been extended: it is spared once.
func (r *redisWorld) jump(ctx context.Context, rng *rand.Rand) (bool, error) {
	for _, d := range []time.Duration{[]time.Duration{time.Hour, -time.Hour}[rng.IntN(2)], 0} {
		if err := r.s.setClock(d); err != nil {
			return false, err
		}
		rest(ctx, 5*plan.Lease/2)
	}
	return true, nil
}

// watch notes the size of the file again and again.
func (r *redisWorld) watch(ctx context.Context) {
	for ctx.Err() == nil {
		name, n := r.s.aof()
		r.mu.Lock()
		r.sizes = append(r.sizes, size{ledger.Now(), name, n})
		if len(r.sizes) > 1000 {
			r.sizes = slices.Delete(r.sizes, 0, 500)
		}
		r.mu.Unlock()
		rest(ctx, 10*time.Millisecond)
	}
}

// powerCut ends the server, and the file is as it was a second ago, or a little longer.
func (r *redisWorld) powerCut(ctx context.Context, rng *rand.Rand) (bool, error) {
	cut := false
	killed := ledger.Now()
	ok, err := r.dies(ctx, rng, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		name, _ := r.s.aof()
		for _, s := range slices.Backward(r.sizes) {
			if s.at < killed-int64(time.Second) && s.name == name {
				cut = true
				r.loss(s.at-int64(everysec), ledger.Now())
				return errors.Join(os.Truncate(name, max(s.n-int64(rng.IntN(10)), 0)), r.s.fix())
			}
		}
		return nil
	})
	return ok && cut, err
}

// full fills the disk. With appendfsync always the server ends then.
func (r *redisWorld) full(ctx context.Context, rng *rand.Rand) (bool, error) {
	from := ledger.Now()
	err := r.disk.fill()
	rest(ctx, ms(rng, 200, 1200))
	err = errors.Join(err, r.disk.empty())
	alive := r.s.signal(0)
	if err := errors.Join(err, r.s.start(ctx)); err != nil {
		return false, err
	}
	if r.s.fsync == "everysec" && !alive {
		r.loss(from-int64(everysec), ledger.Now())
	}
	return true, nil
}

// oom has the server take no more. The tasks that there are can be worked off all the same.
func (r *redisWorld) oom(ctx context.Context, rng *rand.Rand) (bool, error) {
	const q = "probe"
	var tasks []taskqueue.Task
	for _, id := range []string{"run", "wait"} {
		tasks = append(tasks, taskqueue.Task{ID: fmt.Sprint(id, ledger.Now()), Type: "t", MaxFailures: 1, MaxCrashes: 1})
	}
	if _, err := r.probe.Enqueue(ctx, q, tasks); err != nil {
		return false, err
	}
	if err := r.s.client.ConfigSet(ctx, "maxmemory", "1").Err(); err != nil {
		return false, err
	}
	err := r.workOff(ctx, q)
	rest(ctx, ms(rng, 50, 500))
	return true, errors.Join(err, r.s.client.ConfigSet(ctx, "maxmemory", "0").Err())
}

// workOff claims, extends, settles and cancels, which a full server must do.
func (r *redisWorld) workOff(ctx context.Context, q string) error {
	got, err := r.probe.Claim(ctx, store.ClaimRequest{Queue: q, Worker: "probe", Nonce: fmt.Sprint(ledger.Now()), Max: 1, Lease: time.Hour})
	if err != nil || len(got.Tasks) != 1 {
		return fmt.Errorf("a claim of a full server: %d tasks: %w", len(got.Tasks), err)
	}
	ref := store.Ref{ID: got.Tasks[0].ID, Token: got.Tasks[0].Token}
	if _, err := r.probe.Extend(ctx, store.ExtendRequest{Queue: q, Worker: "probe", Refs: []store.Ref{ref}, Lease: time.Hour}); err != nil {
		return fmt.Errorf("an extension on a full server: %w", err)
	}
	if _, err := r.probe.Settle(ctx, q, []store.Outcome{{Ref: ref, Kind: store.Succeeded}}); err != nil {
		return fmt.Errorf("a settlement on a full server: %w", err)
	}
	page, err := r.probe.List(ctx, q, taskqueue.ListRequest{State: taskqueue.StateReady})
	for _, t := range page.Tasks {
		if ok, e := r.probe.Act(ctx, q, t.ID, store.ActCancel); e != nil || !ok {
			err = errors.Join(err, fmt.Errorf("a cancellation on a full server: %v, %w", ok, e))
		}
	}
	return err
}

// late holds the settlement of a long task on its way, and suspends its worker, until
// another one runs the task. Then it arrives.
func (r *redisWorld) late(ctx context.Context, rng *rand.Rand) (bool, error) {
	stopped := false
	held := r.p.hold(ctx, plan.Mark+" of "+string(plan.Long), func(who string) {
		c := r.fleet.of(func(c *child) bool { return c.Name == who })
		if stopped = r.fleet.signal(c, syscall.SIGSTOP); stopped {
			rest(ctx, 2*plan.Lease+ms(rng, 0, 400))
			time.AfterFunc(100*time.Millisecond, func() { r.fleet.signal(c, syscall.SIGCONT) })
		}
	})
	return held && stopped, nil
}

// mend has the server run with nothing in the way.
func (r *redisWorld) mend(ctx context.Context) error {
	return errors.Join(r.disk.empty(), r.s.start(ctx))
}

// left returns the keys of the queue that hold something of a task.
func (r *redisWorld) left(ctx context.Context) (left []string, err error) {
	keys, err := r.s.client.Keys(ctx, "tq:{"+queueName+"}:*").Result()
	for _, k := range keys {
		// Counters and settings, the last claim of each worker, the periodic jobs, who sleeps, places that were given back, sums.
		if name := k[strings.LastIndexByte(k, ':')+1:]; !slices.Contains([]string{"c", "n", "t", "sleep", "wakes", "notes"}, name) {
			left = append(left, "the key "+k)
		}
	}
	return left, err
}

func (r *redisWorld) end() {
	_ = r.p.listener.Close()
	_ = r.probe.Close()
	_ = r.s.client.Close()
	r.s.kill()
	r.disk.close()
	_ = r.s.log.Close()
}
