package taskqueuetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
)

// Program runs one program on an empty store and on a model of it, and returns how
// they differ first; nil if they do not. Each byte of text is a choice: of a call, or
// of one of its arguments. So the same text is the same program, a part of a text is a
// program, and a fuzzer finds its way. unit is how long a short lease is; a program
// waits for a few of them. Only in a testing/synctest bubble does it wait for minutes,
// until what has ended is forgotten: say so by inBubble.
//
// Answers get lost in it: calls are repeated, and what an earlier run of a task has to
// say comes late, twice, or in the same call as what a later run says.
func Program(s taskqueue.Store, text []byte, unit time.Duration, inBubble bool) error {
	p := &program{s: s, m: newModel(), text: text, unit: unit, inBubble: inBubble, last: map[string]taskqueue.ClaimRequest{}}
	for len(p.text) > 0 {
		if err := p.step(); err != nil {
			return fmt.Errorf("call %d: %w", len(p.done), p.told(err))
		}
	}
	if err := p.end(); err != nil {
		return fmt.Errorf("at the end: %w", p.told(err))
	}
	return nil
}

// RandomText returns the text of a program, a different one for each seed.
func RandomText(seed uint64, size int) []byte {
	r := rand.New(rand.NewPCG(seed, seed))
	text := make([]byte, size)
	for i := range text {
		text[i] = byte(r.Uint32())
	}
	return text
}

// Shrink returns a shorter text for which fails still says true.
func Shrink(text []byte, fails func(text []byte) bool) []byte {
	for size := len(text) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(text); {
			shorter := append(bytes.Clone(text[:at]), text[at+size:]...)
			if fails(shorter) {
				text = shorter
			} else {
				at += size
			}
		}
	}
	return text
}

// A program is one that runs.
type program struct {
	s        taskqueue.Store
	m        *model
	text     []byte
	unit     time.Duration
	inBubble bool
	runs     []taskqueue.Ref // all that there ever were
	nonces   int
	last     map[string]taskqueue.ClaimRequest // by worker
	done     []string                          // what was called
}

func (p *program) told(err error) error {
	text := ""
	for _, d := range p.done[max(0, len(p.done)-25):] {
		text += "\n  " + d
	}
	return fmt.Errorf("%w\nthe last calls:%s", err, text)
}

func (p *program) note(format string, args ...any) {
	p.done = append(p.done, fmt.Sprintf(format, args...))
}

// pick takes a choice of n.
func (p *program) pick(n int) int {
	if len(p.text) == 0 {
		return 0
	}
	c := int(p.text[0]) % n
	p.text = p.text[1:]
	return c
}

func (p *program) id() string { return string(rune('a' + p.pick(6))) }

func (p *program) span() time.Duration {
	return []time.Duration{0, 0, p.unit / 2, p.unit, 4 * p.unit, 10 * time.Minute}[p.pick(6)]
}

func (p *program) task() taskqueue.Task {
	t := taskqueue.Task{
		ID: p.id(), Type: "t", Queue: queue, Delay: p.span(), Priority: uint8(p.pick(3)),
		MaxFailures: 1 + p.pick(3), MaxCrashes: 1 + p.pick(3), Payload: []byte{1, byte(p.pick(256))},
	}
	switch p.pick(4) {
	case 0:
		t.UniqueKey = "k"
	case 1:
		t.UniqueKey, t.Until = "k", taskqueue.Start
	}
	return t
}

// ref is a run that there was, as a rule, and often the last.
func (p *program) ref() taskqueue.Ref {
	switch n := len(p.runs); {
	case n == 0 || p.pick(16) == 0:
		return taskqueue.Ref{ID: p.id(), Token: 1}
	case p.pick(2) == 0:
		return p.runs[n-1]
	default:
		return p.runs[max(0, n-1-p.pick(8))]
	}
}

// step makes one call.
func (p *program) step() error {
	var err error
	switch p.pick(16) {
	case 0, 1, 2:
		err = p.enqueue()
	case 3, 4, 5:
		err = p.claim()
	case 6:
		err = p.replay()
	case 7, 8, 9:
		err = p.settle()
	case 10:
		err = p.extend()
	case 11, 12:
		err = p.act()
	case 13:
		if p.pick(4) == 0 {
			err = p.purge()
		} else {
			err = p.tick()
		}
	case 14:
		err = p.configure()
	case 15:
		d := []time.Duration{p.unit / 4, p.unit / 2, p.unit, p.unit + p.unit/2}[p.pick(4)]
		if p.inBubble && p.pick(8) == 0 {
			d = 61 * time.Second
		}
		p.note("wait %v", d)
		time.Sleep(d)
	}
	if err == nil {
		err = p.compare()
	}
	return err
}

func (p *program) enqueue() error {
	tasks := make([]taskqueue.NewTask, 1+p.pick(3))
	for i := range tasks {
		tasks[i].Task = p.task()
	}
	for range 1 + p.pick(2) { // the answer got lost
		before := time.Now()
		got, err := p.s.Enqueue(ctx, queue, tasks)
		after := time.Now()
		if err != nil {
			return err
		}
		p.note("Enqueue %+v: %v", tasks, got)
		if len(got) != len(tasks) {
			return fmt.Errorf("%d results for %d tasks", len(got), len(tasks))
		}
		for i, t := range tasks {
			if want := p.m.add(t.Task, before, after); got[i] != want {
				return fmt.Errorf("enqueue of %s said %v, the model %v", t.ID, got[i], want)
			}
		}
	}
	return nil
}

func (p *program) claim() error {
	p.nonces++
	r := taskqueue.ClaimRequest{
		Queue: queue, Worker: []string{"v", "w"}[p.pick(2)], Nonce: fmt.Sprint(p.nonces), Max: p.pick(4),
		Lease: []time.Duration{p.unit, 3 * p.unit, 10 * time.Minute}[p.pick(3)],
	}
	p.last[r.Worker] = r
	got, err := p.s.Claim(ctx, r)
	if err != nil {
		return err
	}
	p.note("Claim %+v: %v", r, refs(got.Tasks))
	now, err := p.look()
	if err != nil {
		return err
	}
	for _, t := range got.Tasks {
		p.runs = append(p.runs, taskqueue.Ref{ID: t.ID, Token: t.Token})
	}
	return p.m.claim(r, got, now)
}

// replay is a claim whose answer got lost.
func (p *program) replay() error {
	r, ok := p.last[[]string{"v", "w"}[p.pick(2)]]
	if !ok {
		return nil
	}
	got, err := p.s.Claim(ctx, r)
	if err != nil {
		return err
	}
	p.note("Claim %+v once more: %v", r, refs(got.Tasks))
	return p.m.replay(r, got)
}

func refs(tasks []taskqueue.Info) (all []taskqueue.Ref) {
	for _, t := range tasks {
		all = append(all, taskqueue.Ref{ID: t.ID, Token: t.Token})
	}
	return all
}

func (p *program) settle() error {
	all := make([]taskqueue.Outcome, 1+p.pick(2))
	for i := range all {
		o := &all[i]
		o.Ref, o.Kind = p.ref(), taskqueue.OutcomeKind(1+p.pick(6))
		if o.Kind == taskqueue.Failed || o.Kind == taskqueue.Released || o.Kind == taskqueue.Snoozed {
			o.After = p.span()
		}
		if o.Kind == taskqueue.Succeeded {
			o.Result = []byte("result")
		}
	}
	for range 1 + p.pick(2) { // the answer got lost
		before := time.Now()
		got, err := p.s.Settle(ctx, queue, all)
		after := time.Now()
		if err != nil {
			return err
		}
		p.note("Settle %+v: %v", all, got)
		p.m.stepped(before, after)
		for i, o := range all {
			if want := p.m.settle(o, before, after); i >= len(got) || got[i] != want {
				return fmt.Errorf("settle of %s said %v, the model %v for the outcome %d", o.ID, got, want, i)
			}
		}
	}
	return nil
}

func (p *program) extend() error {
	r := taskqueue.ExtendRequest{Queue: queue, Worker: "w", Lease: []time.Duration{p.unit, 10 * time.Minute}[p.pick(2)], Progress: map[string][]byte{}}
	for range 1 + p.pick(2) {
		ref := p.ref()
		r.Refs = append(r.Refs, ref)
		if p.pick(2) == 0 {
			r.Progress[ref.ID] = []byte{byte('0' + p.pick(10))}
		}
	}
	before := time.Now()
	got, err := p.s.Extend(ctx, r)
	after := time.Now()
	if err != nil {
		return err
	}
	p.note("Extend %+v: %v", r, got)
	p.m.stepped(before, after)
	for i, ref := range r.Refs {
		if want := p.m.extend(ref, r, before, after); i >= len(got) || got[i] != want {
			return fmt.Errorf("extend of %v said %v, the model %v", ref, got, want)
		}
	}
	return nil
}

func (p *program) act() error {
	id, act := p.id(), taskqueue.Act(1+p.pick(4))
	before := time.Now()
	did, err := p.s.Act(ctx, queue, id, act)
	after := time.Now()
	p.note("Act %d on %s: %v %v", act, id, did, err)
	return p.m.act(id, act, did, err, before, after)
}

func (p *program) purge() error {
	state := []taskqueue.State{taskqueue.StateScheduled, taskqueue.StateReady, taskqueue.StateRetrying, taskqueue.StateDone, taskqueue.StateDead, taskqueue.StateCancelled}[p.pick(6)]
	before := time.Now()
	n, _, err := p.s.Purge(ctx, queue, state, "")
	after := time.Now()
	if err != nil {
		return err
	}
	p.note("Purge %v: %d", state, n)
	now, err := p.look()
	if err != nil {
		return err
	}
	return p.m.purge(state, n, now, before, after)
}

var epoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

func (p *program) tick() error {
	t := taskqueue.Tick{Queue: queue, Name: []string{"x", "y"}[p.pick(2)], Schedule: "@hourly", At: epoch.Add(time.Duration(p.pick(8)) * time.Hour)}
	t.Task.Task = p.task()
	before := time.Now()
	did, err := p.s.Tick(ctx, t)
	after := time.Now()
	if err != nil {
		return err
	}
	p.note("Tick %+v: %v", t, did)
	if want := p.m.tick(t, before, after); did != want {
		return fmt.Errorf("tick said %v, the model %v", did, want)
	}
	return nil
}

func (p *program) configure() error {
	paused, concurrency, dead := p.pick(6) == 0, p.pick(4), p.pick(3)
	if p.pick(2) == 0 {
		concurrency = 0
	}
	p.note("Configure: paused %v, %d at a time, %d dead", paused, concurrency, dead)
	f := func(s *taskqueue.Settings) { s.Paused, s.Concurrency, s.MaxDead = paused, concurrency, dead }
	f(&p.m.settings)
	return p.s.Configure(ctx, queue, f)
}
