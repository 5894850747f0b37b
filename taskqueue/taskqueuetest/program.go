package taskqueuetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
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
	p := &program{s: s, m: newModel(), text: text, unit: unit, inBubble: inBubble, last: map[string]store.ClaimRequest{}}
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
	runs     []store.Ref // all that there ever were
	nonces   int
	last     map[string]store.ClaimRequest // by worker
	done     []string                      // what was called
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
	if p.pick(5) == 0 {
		t.ExpiresAt = time.Now().Add(p.span() - p.unit/4).Truncate(time.Microsecond)
	}
	t.LimitKey = []string{"", "", "t-1", "t-2"}[p.pick(4)]
	switch p.pick(4) {
	case 0:
		t.UniqueKey = "k"
	case 1:
		t.UniqueKey, t.Until = "k", taskqueue.Start
	}
	return t
}

// ref is a run that there was, as a rule, and often the last.
func (p *program) ref() store.Ref {
	switch n := len(p.runs); {
	case n == 0 || p.pick(16) == 0:
		return store.Ref{ID: p.id(), Token: 1}
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
		if p.pick(2) == 0 {
			err = p.setLimit()
		} else {
			err = p.configure()
		}
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
