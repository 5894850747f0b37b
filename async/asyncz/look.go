package asyncz

import (
	"sync"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/picture"
)

// This file looks at the tree, once for all that ask at about the same time.

// Bounds of looking: it may take one part in so many of one core, and a look is good for a second.
const (
	share = 20
	fresh = time.Second
)

// A looker looks at most once at a time, and has others share what it has seen. The zero value with opts is ready.
type looker struct {
	opts []async.LookOption

	mu   sync.Mutex // held while it looks: others wait for that look
	pic  *picture.Tree
	next time.Time // until then pic is good enough
}

// look returns a picture, and whether it is another one than the last call has returned.
func (l *looker) look() (pic *picture.Tree, isNew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pic != nil && time.Now().Before(l.next) {
		return l.pic, false
	}
	l.pic = async.Snapshot(l.opts...)
	l.next = time.Now().Add(max(fresh, share*l.pic.Took))
	return l.pic, true
}

// look returns a picture, with what the page knows of before.
func (p *Page) look(stacks bool) *picture.Tree {
	l := &p.plain
	if stacks && p.stacks {
		l = &p.deep
	}
	pic, isNew := l.look()
	if isNew {
		p.note(pic)
	}
	return pic
}

// A problemKey tells one problem from another.
type problemKey struct {
	kind picture.ProblemKind
	node picture.ID
}

const ringKind picture.ProblemKind = "ring"

// A sample is a few figures of one look.
type sample struct {
	at   time.Time
	live int
}

// A waitKey tells one wait from another.
type waitKey struct {
	by   picture.ID
	how  picture.Way
	mark uint64
}

// waits returns when each wait of pic was seen first by a look, without a gap.
func (p *Page) waits(pic *picture.Tree) map[waitKey]time.Time {
	since := make(map[waitKey]time.Time)
	for i := range pic.Nodes {
		n := &pic.Nodes[i]
		for _, w := range n.Waits {
			if w.Mark == 0 {
				continue
			}
			key := waitKey{n.ID, w.How, w.Mark}
			first, known := p.waited[key]
			if !known {
				first = pic.At
			}
			since[key] = first
		}
	}
	return since
}

// note keeps what will be asked for when the picture is gone.
func (p *Page) note(pic *picture.Tree) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ages.note(pic)
	first := make(map[problemKey]time.Time, len(p.first))
	keep := func(key problemKey) {
		since, known := p.first[key]
		if !known {
			since = pic.At
		}
		first[key] = since
	}
	for i := range pic.Rings {
		keep(keyOfRing(&pic.Rings[i]))
	}
	for i := range pic.Problems {
		keep(problemKey{pic.Problems[i].Kind, pic.Problems[i].Node})
	}
	p.first, p.waited = first, p.waits(pic)
	if p.rec != nil {
		p.recorded = p.recordingOf(pic)
	}
	if n := len(p.past); n == 0 || pic.At.Sub(p.past[n-1].at) >= each {
		p.past = append(p.past, sample{pic.At, pic.Live})
	}
	if more := len(p.past) - mostPast; more > 0 {
		p.past = append(p.past[:0], p.past[more:]...)
	}
}

// mostPast is the samples of ten minutes.
const mostPast = 120

// keyOfRing names a ring by the least of its tasks.
func keyOfRing(r *picture.Ring) problemKey {
	least := r.Waits[0].By
	for _, w := range r.Waits[1:] {
		if w.By.Scope < least.Scope || w.By.Scope == least.Scope && w.By.Ordinal < least.Ordinal {
			least = w.By
		}
	}
	return problemKey{ringKind, least}
}

// known is what the page knows of before when a document is made.
type known struct {
	ages  func(id picture.ID) age
	since func(key problemKey) time.Time
	waits func(key waitKey) time.Time
	past  []sample
}

// known returns what the page knows at the time of pic. It is called with no lock held, and what it returns is the
// caller's.
func (p *Page) known(pic *picture.Tree) known {
	p.mu.Lock()
	defer p.mu.Unlock()
	ids := make(map[picture.ID]age, len(pic.Nodes))
	for i := range pic.Nodes {
		id := pic.Nodes[i].ID
		ids[id] = p.ages.of(id, pic.At)
		if begun := pic.Nodes[i].Begun; !begun.IsZero() { // a recorder, or another observer, had it timed
			exact := max(pic.At.Sub(begun), 1)
			ids[id] = age{exact, exact}
		}
	}
	first, waited := p.first, p.waited // never changed, only replaced
	return known{
		ages:  func(id picture.ID) age { return ids[id] },
		since: func(key problemKey) time.Time { return first[key] },
		waits: func(key waitKey) time.Time { return waited[key] },
		past:  append([]sample(nil), p.past...),
	}
}
