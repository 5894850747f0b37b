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
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// Tellers are processes that make a history together. In the middle of a claim one of them is killed
// with kill -9, or stands still for longer than its session lives: one after the other, in turn.
type Tellers struct {
	Seed    uint64
	Store   string // for the processes
	Open    Opener // for this one
	TTL     time.Duration
	Second  time.Duration // for how long they take a second
	Workers int
	Each    int // items of each
	Strikes int // how often one of them is hit
}

// A telling process is one of them.
type tellingProcess struct {
	*exec.Cmd
	name  string
	input io.WriteCloser
	heard chan struct{} // closed when it has ended, and all that it has said was noted
	mu    sync.Mutex    // a line is written at once
}

// A recording is one history that is being made.
type recording struct {
	Tellers
	t       *testing.T
	h       *History
	mu      sync.Mutex
	strike  func(p *tellingProcess, e Entry) // what happens at the next claim; guarded by mu
	workers map[string]*tellingProcess       // that live
	started int
}

// Run has the history made, and checks it.
func (o Tellers) Run(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := &recording{Tellers: o, t: t, h: NewHistory(o.Seed), workers: map[string]*tellingProcess{}}
	for range o.Workers {
		r.start()
	}
	kv, shut, err := o.Open(ctx)
	require.NoError(t, err)
	defer shut()
	own, err := NewClient(ctx, r.h, "own", r.h.dice, kv, Direct, Limits(kvqueue.TTL(o.TTL))...)
	require.NoError(t, err)
	own.Second = o.Second
	reviving, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { own.Revive(reviving) })
	for i := range o.Strikes {
		r.hit(ctx, own, i%2 == 0)
	}
	require.NoError(t, r.h.until(ctx, r.idle), "they add all of their items")
	drained := r.h.drained(ctx, own, kv)
	r.end()
	stop()
	all.Wait()
	closeClient(t, own)
	if drained {
		r.h.finish(t, kv)
	}
	r.h.Check(t)
}

// idle reports whether all that live add no more. It is called with the mu of the history held.
func (r *recording) idle() bool {
	idle := map[string]bool{}
	for _, e := range r.h.entries {
		idle[e.Who] = idle[e.Who] || e.Kind == Idle
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.workers {
		if !idle[name] {
			return false
		}
	}
	return true
}

// hit hits the process that gets the next claim, before it can do anything with it: it asks for the
// time first, and gets no answer. own adds what is claimed, if nothing else is left. Then others have some time to
// claim what it had.
func (r *recording) hit(ctx context.Context, own *Client, kill bool) {
	done := make(chan struct{})
	var victim *tellingProcess
	var claim Entry
	r.mu.Lock()
	r.strike = func(p *tellingProcess, e Entry) {
		if victim, claim = p, e; kill {
			_ = p.Process.Kill()
			delete(r.workers, p.name)
		} else {
			assert.NoError(r.t, p.Process.Signal(syscall.SIGSTOP))
		}
		close(done)
	}
	r.mu.Unlock()
	for range 2 { // what there is may have gone before this
		some, cancel := context.WithTimeout(ctx, 4*r.TTL) // who stands still since the first may have the file of the store locked
		own.Produce(some, fmt.Sprint("own.", r.h.Tick()))
		cancel()
	}
	select {
	case <-done:
	case <-ctx.Done():
		r.t.Fatal("nobody claims anything")
	}
	if kill {
		r.h.Note(Entry{Kind: Over, Who: victim.name, At: r.h.Tick()})
		r.start()
	}
	some, cancel := context.WithTimeout(ctx, 4*r.TTL) // who has the file of a store may be the one that stands still
	defer cancel()
	again := r.h.until(some, func() bool {
		for _, e := range r.h.entries {
			if e.Kind == Claimed && e.Key == claim.Key && e.Fence > claim.Fence {
				return true
			}
		}
		return false
	})
	r.t.Logf("%s was hit (killed: %v); its item came to another: %v", victim.name, kill, again == nil)
	if !kill {
		assert.NoError(r.t, victim.Process.Signal(syscall.SIGCONT))
	}
}

// end tells all that live to end, and waits for that.
func (r *recording) end() {
	for _, p := range r.workers {
		p.say(mayEnd)
	}
	for _, p := range r.workers {
		select {
		case <-p.heard:
			assert.NoError(r.t, p.Wait(), p.name)
		case <-time.After(patience):
			r.t.Errorf("%s does not end", p.name)
		}
	}
}

func (p *tellingProcess) say(text any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintln(p.input, text)
}

// start starts a process. It is killed at the end of the test, if it runs still.
func (r *recording) start() {
	name := fmt.Sprint("p", r.started)
	r.started++
	text, err := json.Marshal(order{Store: r.Store, Name: name, Seed: r.Seed<<16 + uint64(r.started), TTL: r.TTL, Second: r.Second, Each: r.Each})
	require.NoError(r.t, err)
	program, err := os.Executable()
	require.NoError(r.t, err)
	p := &tellingProcess{Cmd: exec.Command(program), name: name, heard: make(chan struct{})}
	p.Env = append(os.Environ(), childEnv+"="+string(text), "GORACE=atexit_sleep_ms=0")
	p.Stderr = os.Stderr
	p.input, err = p.StdinPipe()
	require.NoError(r.t, err)
	output, err := p.StdoutPipe()
	require.NoError(r.t, err)
	require.NoError(r.t, p.Start())
	r.mu.Lock()
	r.workers[name] = p
	r.mu.Unlock()
	go r.hear(p, output)
	r.t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.heard
		_ = p.Wait()
	})
}

// hear writes down what a process tells, and tells it the time.
func (r *recording) hear(p *tellingProcess, output io.Reader) {
	defer close(p.heard)
	for s := bufio.NewScanner(output); s.Scan(); {
		if s.Text() == asksTime {
			p.say(r.h.Tick())
			continue
		}
		var e Entry
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			r.t.Errorf("%s says %q: %v", p.name, s.Text(), err)
			continue
		}
		if r.h.Note(e); e.Kind == Claimed {
			r.claimed(p, e)
		}
	}
}

func (r *recording) claimed(p *tellingProcess, e Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if strike := r.strike; strike != nil {
		r.strike = nil
		strike(p, e)
	}
}
