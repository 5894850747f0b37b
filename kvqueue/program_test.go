package kvqueue_test

import (
	"context"
	"flag"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/internal/proof"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

var (
	programs  = flag.Int("programs", 30, "how many random programs are run")
	histories = flag.Int("histories", 12, "how many histories are recorded")
	from      = flag.Uint64("from", 0, "the seed of the first")
)

// TestRandomPrograms has several handles do what they can on one queue, while transactions
// are refused, their answers are lost, networks fail and handles are killed, and looks
// whether the invariants hold after each transaction and nothing is lost in the end.
func TestRandomPrograms(t *testing.T) {
	for seed := range uint64(*programs) {
		t.Run(fmt.Sprint(seed+*from), func(t *testing.T) { runProgram(t, seed+*from) })
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
	kv     kvqueue.KV
	dice   *proof.Dice
	ledger *proof.Ledger
	names  atomic.Int64 // of workers
}

var errFails = fmt.Errorf("the handler fails")

func runProgram(t *testing.T, seed uint64) {
	synctest.Test(t, func(t *testing.T) {
		defer bound(seed)()
		p := &program{t: t, dice: proof.NewDice(seed), ledger: proof.NewLedger()}
		var faulty atomic.Bool
		var steps atomic.Int64
		faults := proof.Faults(p.dice, []int{0, 20, 100, 300}[p.dice.N(4)])
		store := memkv.New(memkv.Faults(func(g []kvqueue.Guard, w []kvqueue.Write) memkv.Fault {
			if steps.Add(1) == mostSteps {
				endless(seed, fmt.Sprintf("%d transactions", mostSteps))
			}
			if !faulty.Load() {
				return memkv.None
			}
			return faults(g, w)
		}))
		defer store.Close()
		p.kv = store
		in, out := proof.NewAuditor("in"), proof.NewAuditor("out")
		following, unfollow := context.WithCancel(context.Background())
		var followers sync.WaitGroup
		for _, a := range []*proof.Auditor{in, out} {
			followers.Go(func() { a.Follow(following, proof.Always(store)) })
			require.NoError(t, a.Settle(t.Context(), store)) // it sees what comes and goes at once
		}
		faulty.Store(true)
		ctx, stop := context.WithTimeout(t.Context(), time.Duration(5+p.dice.N(40))*time.Second)
		defer stop()
		var all sync.WaitGroup
		for range 2 + p.dice.N(3) {
			all.Go(func() {
				for ctx.Err() == nil {
					p.handle(ctx)
				}
			})
		}
		all.Wait()
		faulty.Store(false)
		p.drain()
		for _, a := range []*proof.Auditor{in, out} {
			require.NoError(t, a.Settle(t.Context(), store))
			require.NoError(t, a.Compare(t.Context(), store))
		}
		unfollow()
		followers.Wait()
		in.Order()
		in.Report(t)
		out.Report(t)
		p.ledger.Check(t, in, out)
	})
}

// mostSteps is how many transactions a program may ask for. Those that end need some thousands.
const mostSteps = 1_000_000

// bound ends the process if a random program has not ended after an hour of its bubble's time, which
// a queue that waits for what never comes lets go on for ever, at full load. A program that ends
// takes about a minute of it. Call the function that bound returns at the end of the program.
func bound(seed uint64) (end func() bool) {
	return time.AfterFunc(time.Hour, func() { endless(seed, "an hour of its bubble") }).Stop
}

func endless(seed uint64, after string) {
	debug.SetTraceback("all")
	panic(fmt.Sprintf("kvqueue: the program of seed %d has not ended after %s", seed, after))
}

// handle opens a handle, uses it, and closes or kills it.
func (p *program) handle(ctx context.Context) {
	w := &proof.Worker{Name: fmt.Sprintf("%d.", p.names.Add(1)), Dice: p.dice, Second: time.Second, Note: p.ledger.Note}
	net := newCut(p.kv)
	if slow := p.dice.N(3); slow > 0 {
		most := []int{0, int(time.Millisecond), int(30 * time.Millisecond)}[slow]
		net.delay = func() time.Duration { return time.Duration(p.dice.N(most)) }
	}
	q, err := kvqueue.Open(ctx, net, "in", w.Options(2*time.Second)...)
	if err != nil {
		return
	}
	out, err := kvqueue.Open(ctx, net, "out")
	if err != nil {
		assert.NoError(p.t, q.Close(context.Background()))
		return
	}
	ctx, stop := context.WithTimeout(ctx, time.Duration(1+p.dice.N(10))*time.Second)
	defer stop()
	var all sync.WaitGroup
	all.Go(func() { w.Use(ctx, q, out, p.dice.N(3), p.dice.N(4) > 0) })
	all.Go(func() { p.network(ctx, net) })
	killed := p.dice.N(3) == 0
	if killed {
		all.Go(func() {
			p.dice.Pause(ctx, 5*time.Second)
			net.off()
			stop()
		})
	}
	if p.dice.N(4) == 0 { // close beside everything
		p.dice.Pause(ctx, 5*time.Second)
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

// network fails for a while now and then, or only transactions do: they are sent to a member that stands still,
// while another renews the session.
func (p *program) network(ctx context.Context, net *cut) {
	for ctx.Err() == nil {
		p.dice.Pause(ctx, 4*time.Second)
		switch p.dice.N(4) {
		case 0:
			net.off()
			p.dice.Pause(ctx, 3*time.Second)
			if ctx.Err() != nil { // the handle is being killed
				return
			}
			net.on()
		case 1:
			net.breakWatches(kvqueue.ErrCompacted)
		case 2:
			net.intercept(func([]kvqueue.Guard, []kvqueue.Write) error { return kvqueue.ErrUnknown })
			p.dice.Pause(ctx, 4*time.Second)
			net.intercept(nil)
		}
	}
}

// drain takes what is left, with nothing going wrong any more.
func (p *program) drain() {
	w := &proof.Worker{Dice: p.dice, Second: time.Second, Note: p.ledger.Note}
	q := open(p.t, p.kv, "in", kvqueue.TTL(2*time.Second))
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Minute)
	defer stop()
	require.NoError(p.t, w.Drain(ctx, p.kv, q))
}
