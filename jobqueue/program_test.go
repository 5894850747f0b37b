package jobqueue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/jobqueue"
)

const keys = 8

// A program is bytes that are read as operations on a queue and on its model,
// which after each of them must look the same.
type program struct {
	t      *testing.T
	rest   []byte
	q      *jobqueue.Queue[int, job]
	m      *model
	epoch  time.Time
	rev    int
	hands  [4]*hand
	drains []chan error
	dead   []job
	log    []string
}

func (p *program) next() int {
	if len(p.rest) == 0 {
		return 0
	}
	b := p.rest[0]
	p.rest = p.rest[1:]
	return int(b)
}

// run runs a program. The first two bytes are the options.
func run(t *testing.T, code []byte) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{t: t, rest: code, epoch: time.Now()}
		p.m = &model{settings: p.options()}
		p.make()
		for len(p.rest) > 0 {
			p.step()
			p.check()
		}
		p.say("close")
		p.q.Close()
		p.m.refuse, p.m.closed = true, true
		p.check()
		for i := range p.hands {
			p.end(i, i)
			p.check()
		}
		require.Zero(t, p.m.drains)
		for _, d := range p.drains {
			<-d
		}
	})
}

func (p *program) options() settings {
	b, c := p.next(), p.next()
	return settings{
		again: b&1 != 0, priority: b&2 != 0, retry: b&4 != 0,
		attempts: c % 4, capacity: c / 4 % 6,
	}
}

func (p *program) make() {
	s := p.m.settings
	var opts []jobqueue.Option
	if s.again {
		opts = append(opts, jobqueue.WhileRunning(jobqueue.RunAgain))
	}
	if s.priority {
		opts = append(opts, jobqueue.Priority(func(j job) int { return -s.rank(j) }))
	}
	if s.retry {
		opts = append(opts, jobqueue.RetryDelay(retryDelay))
	}
	if s.attempts > 0 {
		opts = append(opts, jobqueue.MaxAttempts(s.attempts, func(j job, _ error) { p.dead = append(p.dead, j) }))
	}
	if s.capacity > 0 {
		opts = append(opts, jobqueue.Capacity(s.capacity))
	}
	p.q = jobqueue.NewKeyed(func(j job) int { return j.key }, opts...)
	p.say("%+v", s)
}

func (p *program) say(format string, args ...any) {
	p.log = append(p.log, fmt.Sprintf(format, args...))
}

func (p *program) job() job {
	p.rev++
	return job{p.next() % keys, p.rev}
}

// some returns the jobs whose keys are bits of the next byte.
func (p *program) some() (jobs []job) {
	mask := p.next()
	for key := range keys {
		if mask>>key&1 != 0 {
			jobs = append(jobs, job{key: key})
		}
	}
	return jobs
}

func (p *program) step() {
	op := p.next()
	i := op >> 5 % len(p.hands)
	switch op % 20 {
	case 0, 1, 2, 3:
		j := p.job()
		p.say("add %v", j)
		require.Equal(p.t, p.m.add(j, 0), p.q.Add(j), p.log)
	case 4:
		var jobs, rejected []job
		for range p.next() % 6 {
			jobs = append(jobs, p.job())
		}
		p.say("add all %v", jobs)
		for _, j := range jobs {
			if !p.m.add(j, 0) {
				rejected = append(rejected, j)
			}
		}
		require.Equal(p.t, rejected, p.q.AddAll(jobs...), p.log)
	case 5, 6:
		j, d := p.job(), time.Duration(p.next()%8)*time.Millisecond
		p.say("add %v after %v", j, d)
		require.Equal(p.t, p.m.add(j, d), p.q.AddAfter(d, j), p.log)
	case 7, 8:
		d := time.Duration(p.next()%6) * time.Millisecond
		p.say("sleep %v", d)
		p.sleep(d)
	case 9, 10, 11, 12:
		p.take(i, 1+p.next()%3)
	case 13, 14, 15:
		p.settle(i, op%20-13, p.some(), p.next()%2 == 0)
	case 16, 17:
		p.end(i, p.next())
	case 18:
		key := p.next() % keys
		p.say("remove %d", key)
		require.Equal(p.t, p.m.remove(key), p.q.Remove(key), p.log)
	case 19:
		p.rare()
	}
}

// sleep lets time pass, a millisecond at a time: each is a step of its own, since
// what becomes ready is taken by whoever waits, and may come back.
func (p *program) sleep(d time.Duration) {
	for ; d > 0; d -= time.Millisecond {
		time.Sleep(time.Millisecond)
		p.m.now = time.Since(p.epoch)
		p.m.ripen()
		p.check()
	}
}

// rare is what ends a queue, and most of a program with it.
func (p *program) rare() {
	switch p.next() % 16 {
	case 0:
		p.say("close")
		p.q.Close()
		p.m.refuse, p.m.closed = true, true
	case 1:
		p.say("drain")
		done := make(chan error, 1)
		p.drains = append(p.drains, done)
		go func() { done <- p.q.Drain(context.Background()) }()
		p.m.refuse = true
		p.m.drains++
		p.m.serve()
	}
}

// check compares everything that can be seen.
func (p *program) check() {
	synctest.Wait()
	p.q.Remove(-1) // a turn: a closed queue has no timer
	p.m.serve()
	for i, h := range p.hands {
		if h == nil || h.asks == nil || !h.asks.over {
			if h != nil {
				require.Empty(p.t, h.said, "hand %d: %v", i, p.log)
			}
			continue
		}
		require.NotEmpty(p.t, h.said, "hand %d: %v", i, p.log)
		got := (<-h.said).(reply)
		require.Equal(p.t, h.asks.got, got.jobs, p.log)
		require.ErrorIs(p.t, got.err, h.asks.err, p.log)
		h.quit()
		h.asks = nil
	}
	jobs := func(all []*known) []job {
		list := []job{}
		for _, k := range all {
			list = append(list, k.job)
		}
		return list
	}
	queued, inProgress := p.q.Len()
	require.Equal(p.t, jobs(p.m.queued()), p.q.Queued(), p.log)
	require.Equal(p.t, jobs(p.m.inProgress()), p.q.InProgress(), p.log)
	require.Equal(p.t, len(p.m.queued()), queued, p.log)
	require.Equal(p.t, len(p.m.inProgress()), inProgress, p.log)
	require.Equal(p.t, p.m.stats, p.q.Stats(), p.log)
	require.Equal(p.t, p.m.dead, p.dead, p.log)
	for key := range keys {
		var runs int
		if k := p.m.find(key); k != nil {
			runs = k.runs
		}
		require.Equal(p.t, runs, p.q.Attempt(key), "%d: %v", key, p.log)
	}
	waiting := 0
	for _, d := range p.drains {
		if len(d) == 0 {
			waiting++
		}
	}
	require.Equal(p.t, p.m.drains, waiting, p.log)
}

// Whatever is done to it, a queue looks like its model after each step.
func TestRandomProgramsAgreeWithAModel(t *testing.T) {
	for seed := range uint64(2000 / raceFactor) {
		r := rand.New(rand.NewPCG(seed, 5))
		code := make([]byte, 20+r.IntN(400))
		for i := range code {
			code[i] = byte(r.Uint32())
		}
		if run(t, code); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzQueue(f *testing.F) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 6))
		code := make([]byte, 10*(seed+1))
		for i := range code {
			code[i] = byte(r.Uint32())
		}
		f.Add(code)
	}
	f.Fuzz(func(t *testing.T, code []byte) { run(t, code[:min(len(code), 600)]) })
}
