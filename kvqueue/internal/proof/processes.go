//go:build unix

package proof

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// A Program has worker processes use a queue at random while they are killed with kill -9 and
// stopped, and looks in the end whether nothing was lost, and all invariants held.
type Program struct {
	Seed    uint64
	Store   string // for the workers
	Open    Opener // for taking what is left
	Watch   Opener // for the auditors
	TTL     time.Duration
	Second  time.Duration // for how long the workers take a second
	Workers int
	Steps   int // how often something happens
	Every   int // how much the workers say between two of these
	// Happens is what happens besides, one of them chosen at each step with as much likelihood as
	// that a worker is killed, or stopped. Each says what it has done, and how it is to be undone
	// when the workers have said some more; nil: it is not.
	Happens []func(t *testing.T, d *Dice) (what string, undo func())
}

// A run is one program that runs.
type run struct {
	Program
	t       *testing.T
	ctx     context.Context
	dice    *Dice
	ledger  *Ledger
	workers []*process
	started int
}

// Run runs the program.
func (p Program) Run(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := &run{Program: p, t: t, ctx: ctx, dice: NewDice(p.Seed), ledger: NewLedger()}
	in, out := NewAuditor("in"), NewAuditor("out")
	following, unfollow := context.WithCancel(ctx)
	var followers sync.WaitGroup
	defer followers.Wait()
	defer unfollow()
	for _, a := range []*Auditor{in, out} {
		followers.Go(func() { a.Follow(following, p.Watch) })
	}
	r.settle(in, out)
	for range p.Workers {
		r.start()
	}
	for range p.Steps {
		r.step()
	}
	r.end()
	if t.Failed() {
		return
	}
	r.judge(in, out)
	t.Logf("%v", r.ledger.Counts())
}

// settle waits until the auditors follow: they see what comes and goes at once.
func (r *run) settle(auditors ...*Auditor) {
	kv, shut, err := r.Open(r.ctx)
	require.NoError(r.t, err)
	defer shut()
	for _, a := range auditors {
		require.NoError(r.t, a.Settle(r.ctx, kv))
	}
}

// step waits until the workers have said something, and has something happen.
func (r *run) step() {
	r.listen(r.Every)
	var what string
	var undo func()
	switch n := r.dice.N(2 + len(r.Happens)); n {
	case 0:
		what, undo = r.kill()
	case 1:
		what, undo = r.stop()
	default:
		what, undo = r.Happens[n-2](r.t, r.dice)
	}
	r.t.Log(what)
	if undo != nil {
		r.listen(r.dice.N(r.Every))
		undo()
	}
}

// listen waits until the workers have said so many words more. If the one that is stopped has
// what they all need they say nothing: then some seconds are enough.
func (r *run) listen(words int) {
	begin, _ := r.ledger.Said()
	most := time.NewTimer(5 * time.Second)
	defer most.Stop()
	for {
		now, more := r.ledger.Said()
		if now >= begin+words {
			return
		}
		select {
		case <-more:
		case <-most.C:
			return
		case <-r.ctx.Done():
			r.t.Fatal("the workers say nothing any more")
		}
	}
}

// kill kills a worker with kill -9, and starts another.
func (r *run) kill() (string, func()) {
	i := r.dice.N(len(r.workers))
	w := r.workers[i]
	_ = w.Process.Kill()
	w.killed = true
	r.workers = slices.Delete(r.workers, i, i+1)
	w.wait(r.t)
	r.start()
	return "killed worker " + w.name, nil
}

// stop stops a worker.
func (r *run) stop() (string, func()) {
	w := r.workers[r.dice.N(len(r.workers))]
	assert.NoError(r.t, w.Process.Signal(syscall.SIGSTOP))
	return "stopped worker " + w.name, func() { assert.NoError(r.t, w.Process.Signal(syscall.SIGCONT)) }
}

// end tells all workers to end, and waits for that.
func (r *run) end() {
	for _, w := range r.workers {
		_ = w.input.Close()
	}
	for _, w := range r.workers {
		w.wait(r.t)
	}
}

// judge takes what is left, and looks whether all that was said was so.
func (r *run) judge(in, out *Auditor) {
	t := r.t
	kv, shut, err := r.Open(r.ctx)
	require.NoError(t, err)
	defer shut()
	q, err := kvqueue.Open(r.ctx, kv, "in", kvqueue.CompactedElsewhere(), kvqueue.TTL(r.TTL))
	require.NoError(t, err)
	defer func() { assert.NoError(t, q.Close(context.WithoutCancel(r.ctx))) }()
	w := &Worker{Dice: r.dice, Second: r.Second, Note: r.ledger.Note}
	for { // what a worker had sent before its end may come to be done after it
		require.NoError(t, w.Drain(r.ctx, kv, q))
		require.NoError(t, in.Settle(r.ctx, kv))
		if in.Left() == 0 {
			break
		}
	}
	for _, a := range []*Auditor{in, out} {
		require.NoError(t, a.Settle(r.ctx, kv))
		require.NoError(t, a.Compare(r.ctx, kv))
		a.Order()
		a.Report(t)
	}
	r.ledger.Check(t, in, out)
}

// A process is a worker.
type process struct {
	*exec.Cmd
	name   string
	input  io.Closer
	heard  chan struct{} // closed when it has ended, and all that it has said was noted
	killed bool
	waited bool
}

// start starts a worker. It is killed at the end of the test, if it runs still.
func (r *run) start() {
	r.t.Helper()
	o := order{Store: r.Store, Name: fmt.Sprint("w", r.started), Seed: r.Seed<<16 + uint64(r.started), TTL: r.TTL, Second: r.Second,
		Likely: []int{0, 20, 100}[r.dice.N(3)]}
	r.started++
	text, err := json.Marshal(o)
	require.NoError(r.t, err)
	program, err := os.Executable()
	require.NoError(r.t, err)
	p := &process{Cmd: exec.Command(program), name: o.Name, heard: make(chan struct{})}
	p.Env = append(os.Environ(), childEnv+"="+string(text), "GORACE=atexit_sleep_ms=0")
	p.Stderr = os.Stderr
	p.input, err = p.StdinPipe()
	require.NoError(r.t, err)
	output, err := p.StdoutPipe()
	require.NoError(r.t, err)
	require.NoError(r.t, p.Start())
	go func() {
		defer close(p.heard)
		for s := bufio.NewScanner(output); s.Scan(); {
			word, value, _ := strings.Cut(s.Text(), " ")
			r.ledger.Note(Word(word), value)
		}
	}()
	r.t.Cleanup(func() {
		_ = p.Process.Kill()
		p.killed = true
		p.wait(r.t)
	})
	r.workers = append(r.workers, p)
}

// wait waits for the end of a worker, which is to be well if nobody has killed it.
func (p *process) wait(t *testing.T) {
	if p.waited {
		return
	}
	p.waited = true
	select {
	case <-p.heard:
	case <-time.After(patience):
		t.Errorf("worker %s does not end", p.name)
		_ = p.Process.Signal(syscall.SIGQUIT) // it says where it stands
		<-p.heard
	}
	if err := p.Wait(); err != nil && !p.killed {
		t.Errorf("worker %s: %v", p.name, err)
	}
}
