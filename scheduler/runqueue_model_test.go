package scheduler

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// This file has a run queue meet a pool that answers by chance, and goroutines that come, go
// and die by chance. The model knows who really does what.

type modelWorker struct {
	seat
	tasks  int
	active bool // it is in the line, or has a goroutine
	closed bool
}

func (w *modelWorker) onPool() (bool, int) { panic("a model has no tasks") }
func (w *modelWorker) refused(error)       { w.tasks, w.active = 0, false }

// A modelServer is a goroutine that goes through the line.
type modelServer struct {
	at, waitsFor            *modelWorker
	standsIn, lent, backing bool // backing: it is being offered back to the pool
	answered                bool // by the pool, and it has not heard of that yet
}

type modelPool struct {
	q        runQueue
	rng      *rand.Rand
	kind     int  // 0: can only block, 1: can be asked, 2: inline
	refusing bool // by chance
	places   int  // only if it can be asked
	workers  []*modelWorker
	servers  []*modelServer
	offers   []*seat // submissions that the pool looks at, without blocking
	accepted int     // submissions that it has accepted and not begun
	standing int     // goroutines that are about to stand in
	feeder   bool
	blocked  *seat // what the feeder is in the pool for
	wrong    error
}

var errRefusedByModel = errors.New("refused")

func newModelPool(seed uint64) *modelPool {
	rng := rand.New(rand.NewPCG(seed, 7))
	p := &modelPool{rng: rng, kind: rng.IntN(3), refusing: rng.IntN(2) == 0, places: 1 + rng.IntN(2)}
	p.q.asks, p.q.inline = p.kind == 1, p.kind == 2
	for range 1 + rng.IntN(3) {
		w := new(modelWorker)
		w.seat.init(w)
		p.workers = append(p.workers, w)
	}
	return p
}

// do is what the dispatcher does.
func (p *modelPool) do(todo work, s *seat) {
	if todo&toFeed != 0 {
		p.feeder = true
	}
	if todo&toStandIn != 0 {
		p.standing++
	}
	if todo&toServe != 0 {
		p.serve(p.q.begin(), false)
	}
	if todo&toOffer != 0 {
		p.offers = append(p.offers, s)
	}
}

func (p *modelPool) serve(s *seat, standsIn bool) {
	switch {
	case s != nil:
		p.servers = append(p.servers, &modelServer{at: s.drainer.(*modelWorker), standsIn: standsIn})
	case standsIn:
		p.do(p.q.stoodIn(), nil)
	}
}

func (p *modelPool) schedule() {
	w := p.workers[p.rng.IntN(len(p.workers))]
	if w.closed {
		return
	}
	if w.tasks++; !w.active {
		w.active = true
		p.do(p.q.add(&w.seat), &w.seat)
	}
}

func (p *modelPool) close() {
	if w := p.workers[p.rng.IntN(len(p.workers))]; p.rng.IntN(8) == 0 {
		if w.tasks, w.closed = 0, true; w.turn.inLine {
			w.active = false
		}
		p.q.remove(&w.seat)
	}
}

func (p *modelPool) refuses() bool { return p.refusing && p.rng.IntN(2) == 0 }

// isFull reports that the pool has no place. A pool that cannot be asked always has one here: on
// another, workers may wait for ever for each other's places.
func (p *modelPool) isFull() bool {
	used := p.accepted
	for _, v := range p.servers {
		used += count(!v.standsIn)
	}
	return p.kind == 1 && used >= p.places
}

// take says that the pool has accepted a submission, and perhaps begins with it at once.
func (p *modelPool) take() {
	p.accepted++
	for p.accepted > 0 && p.rng.IntN(2) == 0 {
		p.begin()
	}
}

func (p *modelPool) begin() {
	if p.accepted > 0 {
		p.accepted--
		p.serve(p.q.begin(), false)
	}
}

// answerOffer has the pool answer. A worker may be drained, and others refused, before the
// scheduler hears of that.
func (p *modelPool) answerOffer() {
	if len(p.offers) == 0 {
		return
	}
	s := p.offers[0]
	p.offers = p.offers[1:]
	taken := !p.isFull() && !p.refuses()
	if taken {
		p.take()
		p.some()
	}
	p.do(p.q.offered(s, taken), nil)
}

func (p *modelPool) feed() {
	switch {
	case !p.feeder:
	case p.blocked == nil:
		if p.blocked = p.q.submit(); p.blocked == nil {
			p.feeder = false
			p.do(p.q.fed(), nil)
		}
	default:
		refused := p.refuses()
		if !refused && p.isFull() {
			return // it blocks
		}
		s := p.blocked
		if p.blocked = nil; !refused {
			p.take()
		}
		alone, todo := p.q.submitted(s, refused)
		p.do(todo, nil)
		mayWait := p.accepted+len(p.offers)+p.standing > 0 ||
			slices.ContainsFunc(p.servers, func(v *modelServer) bool { return !v.lent })
		if refused && s.turn.inLine && !mayWait {
			p.wrong = errors.New("a refused worker waits for nobody")
		}
		if alone {
			s.refused(errRefusedByModel)
		}
	}
}

// turn has a goroutine come to the end of a turn, of its wait, or of its life.
func (p *modelPool) turn() {
	if len(p.servers) == 0 {
		return
	}
	i := p.rng.IntN(len(p.servers))
	v := p.servers[i]
	switch {
	case v.answered:
		return
	case v.lent:
		if !v.waitsFor.active {
			v.lent = false
			p.q.takeBack()
		}
		return
	case v.backing:
		taken := !p.isFull() && !p.refuses()
		if v.answered = true; taken {
			p.take()
			p.some()
		}
		v.backing, v.answered = false, false
		p.goOn(v, p.q.handedBack(taken))
		return
	}
	w := v.at
	w.tasks = max(w.tasks-1, 0)
	more := w.tasks > 0
	w.active = more
	switch {
	case p.rng.IntN(6) == 0 || v.standsIn && p.q.isBack():
		if more {
			p.q.ready.add(&w.turn)
		}
		todo := p.q.died()
		p.goOn(v, nil)
		p.do(todo, nil)
	case more && p.q.handBack(&w.seat):
		v.backing = true
	default:
		p.goOn(v, p.q.next())
	}
}

// goOn has v go on with s, or leave.
func (p *modelPool) goOn(v *modelServer, s *seat) {
	if s != nil {
		v.at = s.drainer.(*modelWorker)
		return
	}
	p.servers = slices.DeleteFunc(p.servers, func(o *modelServer) bool { return o == v })
	if v.standsIn {
		p.do(p.q.stoodIn(), nil)
	}
}

func (p *modelPool) wait() {
	if len(p.servers) == 0 {
		return
	}
	v := p.servers[p.rng.IntN(len(p.servers))]
	behind := p.workers[slices.Index(p.workers, v.at)+1:] // so there are no rings
	if !v.lent && !v.backing && len(behind) > 0 {
		v.lent, v.waitsFor = true, behind[p.rng.IntN(len(behind))]
		p.do(p.q.lend(), nil)
	}
}

func (p *modelPool) stand() {
	if p.standing > 0 {
		p.standing--
		p.serve(p.q.next(), true)
	}
}

// some has some of the others do something.
func (p *modelPool) some() {
	for p.rng.IntN(3) > 0 {
		p.step()
	}
}

func (p *modelPool) step() {
	steps := []func(){p.schedule, p.close, p.begin, p.answerOffer, p.feed, p.turn, p.turn, p.wait, p.stand}
	steps[p.rng.IntN(len(steps))]()
}

// check holds the counts of the run queue to what is so. No call of the pool is under way that
// has been decided and not told.
func (p *modelPool) check() error {
	if p.wrong != nil {
		return p.wrong
	}
	lent, standIns, backing := 0, p.standing, 0
	for _, v := range p.servers {
		lent, standIns, backing = lent+count(v.lent), standIns+count(v.standsIn), backing+count(v.backing)
	}
	asking := len(p.offers) + backing + count(p.blocked != nil)
	have := [...]int{p.q.serving, p.q.lent, p.q.standIns, p.q.promised, p.q.asking, p.q.using}
	want := [...]int{
		len(p.servers) + p.standing, lent, standIns,
		p.accepted + asking, asking, len(p.offers) + backing + count(p.feeder),
	}
	if have != want {
		return fmt.Errorf("serving, lent, standIns, promised, asking, using: %v, want %v", have, want)
	}
	for _, w := range p.workers {
		served := slices.ContainsFunc(p.servers, func(v *modelServer) bool { return v.at == w && !v.backing })
		if w.turn.inLine && (served || w.closed) || w.tasks > 0 && !w.turn.inLine && !served {
			return fmt.Errorf("worker with %d tasks: in the line %v, served %v", w.tasks, w.turn.inLine, served)
		}
	}
	// While somebody waits one is there to come by, or will be asked for; unless all wait for
	// workers, and the pool is asked and has not said whether it has room.
	somebody := p.q.coming()+p.accepted+asking > 0 || p.feeder
	if p.q.ready.first != nil && !somebody {
		return errors.New("a worker is forgotten")
	}
	if p.q.ready.first != nil && p.kind > 0 && lent > standIns && !somebody {
		return errors.New("nobody stands in for a goroutine that is lent")
	}
	return nil
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// rest has the pool take everything, and everybody come to an end.
func (p *modelPool) rest() error {
	p.refusing = false
	for range 10_000 {
		for _, step := range []func(){p.begin, p.answerOffer, p.feed, p.turn, p.stand} {
			step()
		}
		if len(p.servers)+len(p.offers)+p.accepted+p.standing+count(p.feeder) == 0 {
			break
		}
	}
	if p.q.ready.first != nil || len(p.servers) > 0 || p.feeder {
		return fmt.Errorf("%d workers wait, %d goroutines serve, a feeder: %v", p.q.ready.length, len(p.servers), p.feeder)
	}
	return p.check()
}

func runModelPool(seed uint64) error {
	p := newModelPool(seed)
	for i := range 60 {
		p.step()
		if err := p.check(); err != nil {
			return fmt.Errorf("seed %d, step %d: %w", seed, i, err)
		}
	}
	if err := p.rest(); err != nil {
		return fmt.Errorf("seed %d, at rest: %w", seed, err)
	}
	return nil
}

// No worker in the line is forgotten, whatever the pool answers and whoever leaves.
func TestARunQueueForgetsNoWorker(t *testing.T) {
	for seed := range uint64(20_000 / RaceFactor) {
		require.NoError(t, runModelPool(seed))
	}
}

func FuzzRunQueue(f *testing.F) {
	for seed := range uint64(10) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { require.NoError(t, runModelPool(seed)) })
}
