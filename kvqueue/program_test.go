package kvqueue_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

var programs = flag.Int("programs", 30, "how many random programs are run")

// TestRandomPrograms has several handles do what they can on one queue, while transactions
// are refused, their answers are lost, networks fail and handles are killed, and looks
// whether the invariants hold after each transaction and nothing is lost in the end.
func TestRandomPrograms(t *testing.T) {
	for seed := range uint64(*programs) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { runProgram(t, seed) })
	}
}

func FuzzPrograms(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed + 1000)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { runProgram(t, seed) })
}

// A program is one run.
type program struct {
	t      *testing.T
	mu     sync.Mutex
	random *rand.Rand
	faulty bool
	likely int // of 1000 transactions that many go wrong

	kv    *audited
	in    *auditor
	out   *auditor
	names int

	sure    map[string]bool // values that were added
	unsure  map[string]bool // that may have been
	refused map[string]bool // that were not
	wanted  map[string]bool // values that a handler has asked to be gone
	acked   map[string]int  // how often the store has said so
	forward map[string]int  // values whose commit was done: they went to out
	maybe   map[string]bool // those that may have
}

// dice returns a number from 0 to before n.
func (p *program) dice(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.random.IntN(n)
}

func (p *program) fault([]kvqueue.Guard, []kvqueue.Write) memkv.Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.faulty || p.random.IntN(1000) >= p.likely {
		return memkv.None
	}
	return []memkv.Fault{memkv.Conflict, memkv.Dropped, memkv.Unanswered, memkv.Late}[p.random.IntN(4)]
}

func (p *program) pause(ctx context.Context, most time.Duration) {
	select {
	case <-time.After(time.Duration(p.dice(int(most)))):
	case <-ctx.Done():
	}
}

var errFails = errors.New("the handler fails")

func runProgram(t *testing.T, seed uint64) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{t: t, random: rand.New(rand.NewPCG(seed, 15)), faulty: true, sure: map[string]bool{}, unsure: map[string]bool{}, refused: map[string]bool{},
			wanted: map[string]bool{}, acked: map[string]int{}, forward: map[string]int{}, maybe: map[string]bool{}}
		p.likely = []int{0, 20, 100, 300}[p.dice(4)]
		store := memkv.New(memkv.Faults(p.fault))
		defer store.Close()
		p.in, p.out = newAuditor(t, store.Store, "in"), newAuditor(t, store.Store, "out")
		following, unfollow := context.WithCancel(context.Background())
		var followers sync.WaitGroup
		followers.Go(func() { p.in.follow(following) })
		followers.Go(func() { p.out.follow(following) })
		p.kv = &audited{KV: store, auditors: []*auditor{p.in, p.out}}
		ctx, stop := context.WithTimeout(t.Context(), time.Duration(5+p.dice(40))*time.Second)
		defer stop()
		var all sync.WaitGroup
		for range 2 + p.dice(3) {
			all.Go(func() { p.handles(ctx) })
		}
		all.Wait()
		p.mu.Lock()
		p.faulty = false
		p.mu.Unlock()
		p.drain()
		synctest.Wait()
		unfollow()
		followers.Wait()
		p.verdict(seed)
	})
}

// handles opens a handle, uses it, and closes or kills it; then the next.
func (p *program) handles(ctx context.Context) {
	for ctx.Err() == nil {
		p.handle(ctx)
	}
}

func (p *program) options() []kvqueue.Option {
	o := []kvqueue.Option{kvqueue.TTL(2 * time.Second), kvqueue.MaxAttempts(3), kvqueue.MaxCrashes(5)}
	if p.dice(2) == 0 {
		o = append(o, kvqueue.RetryDelay(func(int) time.Duration { return time.Duration(p.dice(int(time.Second))) }))
	}
	return o
}

func (p *program) handle(ctx context.Context) {
	net := newCut(p.kv)
	if slow := p.dice(3); slow > 0 {
		most := []int{0, int(time.Millisecond), int(30 * time.Millisecond)}[slow]
		net.delay = func() time.Duration { return time.Duration(p.dice(most)) }
	}
	q, err := kvqueue.Open(ctx, net, "in", p.options()...)
	if err != nil {
		return
	}
	out, err := kvqueue.Open(ctx, net, "out")
	if err != nil {
		assert.NoError(p.t, q.Close(context.Background()))
		return
	}
	ctx, stop := context.WithTimeout(ctx, time.Duration(1+p.dice(10))*time.Second)
	defer stop()
	var all sync.WaitGroup
	for range p.dice(3) {
		all.Go(func() { p.produce(ctx, q) })
	}
	if p.dice(4) > 0 {
		all.Go(func() { p.consume(ctx, q, out) })
	}
	if p.dice(3) == 0 {
		all.Go(func() { p.requeue(ctx, q) })
	}
	all.Go(func() { p.network(ctx, net) })
	killed := p.dice(3) == 0
	if killed {
		all.Go(func() {
			p.pause(ctx, 5*time.Second)
			net.off()
			stop()
		})
	}
	if p.dice(4) == 0 { // close beside everything
		p.pause(ctx, 5*time.Second)
		close, cancel := context.WithTimeout(context.Background(), time.Minute)
		_ = q.Close(close)
		cancel()
		stop()
	}
	all.Wait()
	if killed { // its sessions end by themselves
		time.Sleep(3 * time.Second)
	}
	net.on()
	assert.NoError(p.t, q.Close(context.Background()))
	assert.NoError(p.t, out.Close(context.Background()))
}

// network fails for a while now and then.
func (p *program) network(ctx context.Context, net *cut) {
	for ctx.Err() == nil {
		p.pause(ctx, 4*time.Second)
		switch p.dice(3) {
		case 0:
			net.off()
			p.pause(ctx, 3*time.Second)
			if ctx.Err() != nil { // the handle is being killed
				return
			}
			net.on()
		case 1:
			net.breakWatches(kvqueue.ErrCompacted)
		}
	}
}

func (p *program) produce(ctx context.Context, q *kvqueue.Queue) {
	for ctx.Err() == nil {
		var items [][]byte
		var values []string
		p.mu.Lock()
		n := 1 + p.random.IntN(4)
		if p.random.IntN(20) == 0 {
			n = 70
		}
		for range n {
			p.names++
			values = append(values, fmt.Sprint(p.names))
			items = append(items, []byte(values[len(values)-1]))
		}
		p.mu.Unlock()
		pos, err := q.Enqueue(ctx, items...)
		p.mu.Lock()
		for i, v := range values {
			switch {
			case err == nil || i < pos.Items:
				p.sure[v] = true
			case errors.Is(err, kvqueue.ErrUnknown):
				p.unsure[v] = true
			default:
				p.refused[v] = true
			}
		}
		p.mu.Unlock()
		if errors.Is(err, kvqueue.ErrClosed) {
			return
		}
		p.pause(ctx, time.Second)
	}
}

func (p *program) consume(ctx context.Context, q, out *kvqueue.Queue) {
	workers, most := 1+p.dice(3), 1+p.dice(4)
	err := q.Consume(ctx, workers, most, func(ctx context.Context, items []kvqueue.Item) error {
		return p.handler(ctx, q, out, items)
	})
	assert.True(p.t, err == nil || ctx.Err() != nil, err)
}

func (p *program) handler(ctx context.Context, q, out *kvqueue.Queue, items []kvqueue.Item) error {
	if p.dice(2) == 0 {
		p.pause(ctx, 500*time.Millisecond)
	}
	switch p.dice(12) {
	case 0:
		return errFails
	case 1:
		p.pause(ctx, 4*time.Second)
	case 2:
		_ = q.Nack(ctx, errFails, items[0])
		items = items[1:]
	case 3:
		_ = q.Nack(ctx, nil, items...)
		return nil
	case 4, 5:
		p.want(items)
		if err := q.Ack(ctx, items...); err == nil {
			p.count(p.acked, items)
		}
		return nil
	case 6, 7, 8:
		p.want(items)
		err := q.Commit(ctx, items, func(tx *kvqueue.Tx) {
			for _, i := range items {
				tx.Enqueue(out, i.Value)
				tx.Put(fmt.Appendf(nil, "effect/%s", i.Value), nil)
				tx.If(kvqueue.Guard{Key: fmt.Appendf(nil, "effect/%s", i.Value), Is: kvqueue.Absent})
			}
		})
		switch {
		case err == nil:
			p.count(p.acked, items)
			p.count(p.forward, items)
		case errors.Is(err, kvqueue.ErrUnknown):
			p.mu.Lock()
			defer p.mu.Unlock()
			for _, i := range items {
				p.maybe[string(i.Value)] = true
			}
		case errors.Is(err, kvqueue.ErrConflict):
			p.mu.Lock()
			defer p.mu.Unlock()
			p.t.Errorf("the guard of an effect does not hold: %v", err)
		}
		return err
	}
	p.want(items)
	return nil
}

func (p *program) want(items []kvqueue.Item) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range items {
		p.wanted[string(i.Value)] = true
	}
}

func (p *program) count(in map[string]int, items []kvqueue.Item) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range items {
		in[string(i.Value)]++
	}
}

func (p *program) requeue(ctx context.Context, q *kvqueue.Queue) {
	for ctx.Err() == nil {
		p.pause(ctx, 2*time.Second)
		letters, err := q.Dead(ctx, kvqueue.Key{}, 3)
		if err != nil {
			continue
		}
		for _, l := range letters {
			_, _ = q.Requeue(ctx, l.Key)
		}
	}
}

// drain takes what is left, with nothing going wrong any more.
func (p *program) drain() {
	q := open(p.t, p.kv, "in", kvqueue.TTL(2*time.Second))
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Minute)
	defer stop()
	var all sync.WaitGroup
	all.Go(func() {
		_ = q.Consume(ctx, 3, 5, func(_ context.Context, items []kvqueue.Item) error {
			p.want(items)
			return nil
		})
	})
	for ctx.Err() == nil {
		letters, err := q.Dead(ctx, kvqueue.Key{}, 100)
		require.NoError(p.t, err)
		for _, l := range letters {
			_, err := q.Requeue(ctx, l.Key)
			require.NoError(p.t, err)
		}
		n, err := q.Len(ctx)
		require.NoError(p.t, err)
		if n == (kvqueue.Length{}) {
			break
		}
		p.pause(ctx, time.Second)
	}
	n, err := q.Len(context.Background())
	assert.NoError(p.t, err)
	assert.Equal(p.t, kvqueue.Length{}, n, "nothing is left")
	stop()
	all.Wait()
}

// verdict looks whether all that was said was so.
func (p *program) verdict(seed uint64) {
	p.in.look()
	p.out.look()
	p.in.order()
	p.in.report()
	p.out.report()
	put, gone := p.in.values()
	for v := range p.sure {
		assert.Equal(p.t, 1, put[v], "%s was added", v)
	}
	for v := range p.refused {
		assert.Zero(p.t, put[v], "%s was refused", v)
	}
	for v := range p.unsure {
		assert.LessOrEqual(p.t, put[v], 1, "%s was added once or not", v)
	}
	for v, n := range put {
		assert.Equal(p.t, n, gone[v], "%s is gone", v)
		assert.True(p.t, p.wanted[v], "%s went, and nobody had wanted it", v)
		assert.LessOrEqual(p.t, p.acked[v], 1, "%s was acknowledged", v)
	}
	forwarded, _ := p.out.values()
	for v, n := range p.forward {
		assert.Equal(p.t, n, forwarded[v], "%s was forwarded", v)
	}
	for v, n := range forwarded {
		assert.Equal(p.t, 1, n, v)
		assert.True(p.t, p.forward[v] == 1 || p.maybe[v], "%s was forwarded, and nobody knows of it", v)
	}
	if p.t.Failed() {
		p.t.Logf("seed %d: %d added", seed, len(put))
	}
}
