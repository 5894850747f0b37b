package lockstest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
)

// testPrograms has a store and the plain functions of package book do the same random
// steps, and compares what they answer. Nothing expires in these programs: they are over
// before a request that waits is forgotten, or they do not count.
//
// There are 30 programs, with the race detector 6; LOCKS_PROGRAMS says how many else, and
// LOCKS_SEED which is the first.
func testPrograms(t *testing.T, f *Fixture) {
	first, count := number(t, "LOCKS_SEED", 0), number(t, "LOCKS_PROGRAMS", uint64(Fewer(30)))
	for seed := first; seed < first+count; seed++ {
		p := newProgram(f, seed)
		for range 40 {
			if !p.step() {
				break
			}
		}
		if p.fault != "" {
			t.Fatalf("LOCKS_SEED=%d:\n%s\n%s", seed, strings.Join(p.log, "\n"), p.fault) // the fault last: a long output is cut off at its top
		}
	}
}

// A program is random steps on one lock.
type program struct {
	f      *Fixture
	random *rand.Rand
	name   locks.Name
	kind   locks.Kind
	model  *book.Resource
	now    int64     // of the model: it goes on by a µs with each step
	begin  time.Time // of the store
	asks   time.Time // when the first request was sent, by the clock of this process
	asked  []locks.Request
	fence  int64
	log    []string
	fault  string
}

func newProgram(f *Fixture, seed uint64) *program {
	p := &program{f: f, random: rand.New(rand.NewPCG(seed, 1)), now: 1e15}
	p.name = f.name(fmt.Sprintf("program-%d", seed))
	p.kind = []locks.Kind{locks.Mutex, locks.Semaphore, locks.ReadWrite}[p.random.IntN(3)]
	if f.Store.Traits().Simple && p.kind == locks.ReadWrite {
		p.kind = locks.Semaphore
	}
	p.model = &book.Resource{Name: p.name}
	return p
}

// same notes a step with both answers, and says whether they are the same.
func (p *program) same(what string, got, want any) bool {
	g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want)
	p.log = append(p.log, what+" -> "+g)
	if g != w && !p.asks.IsZero() && time.Since(p.asks) > locks.WaiterLife*2/3 {
		return false // too slow to be compared
	}
	if g != w {
		p.fault = fmt.Sprintf("%s: the store says\n%s\nand the model\n%s", what, g, w)
	}
	return g == w
}

func (p *program) failed(err error) bool {
	p.fault = err.Error()
	return false
}

func (p *program) step() bool {
	p.now++
	s := []locks.Store{p.f.Store, p.f.Other}[p.random.IntN(2)]
	switch n := p.random.IntN(20); {
	case n < 10:
		return p.acquire(s)
	case n < 14:
		return p.release(s)
	case n < 16:
		return p.renew(s)
	case n < 17:
		return p.create(s)
	case n < 18:
		return p.remove(s)
	case n < 19:
		return p.revoke(s)
	}
	return p.get(s)
}

// request is one that was made before, or a new one.
func (p *program) request() locks.Request {
	if len(p.asked) > 0 && p.random.IntN(2) == 0 {
		return p.asked[p.random.IntN(len(p.asked))]
	}
	q := p.f.mutex()
	q.Kind, q.Lease, q.Wait = p.kind, time.Hour, p.random.IntN(4) > 0
	q.Owner = fmt.Sprintf("owner%d", len(p.asked))
	q.Barging, q.DeleteOnRelease, q.OnlyIfExists = p.one(8), p.one(8), p.one(8)
	switch p.kind {
	case locks.Semaphore:
		q.Size, q.Permits, q.Resize, q.Strict = 2+p.random.IntN(2), 1, p.one(4), p.one(8)
		if !p.f.Store.Traits().Simple {
			q.Permits += p.random.IntN(3)
		}
	case locks.ReadWrite:
		q.Shared = p.one(2)
	}
	if p.one(4) {
		q.Data = ptr(fmt.Sprintf("data%d", len(p.asked)))
	}
	p.asked = append(p.asked, q)
	return q
}

func (p *program) one(in int) bool { return p.random.IntN(in) == 0 }

// ref is one of a request that was made, by ID or by version.
func (p *program) ref() locks.Ref {
	if len(p.asked) == 0 {
		return locks.Ref{ID: ID()}
	}
	q := p.asked[p.random.IntN(len(p.asked))]
	if p.one(3) {
		return locks.Ref{Version: q.Version}
	}
	return locks.Ref{ID: q.ID}
}

type answered struct {
	Granted bool
	Place   int
	Holder  string
	Sort    string
	Grant   locks.Grant
}

// stable is a grant without what depends on the time.
func stable(g locks.Grant) locks.Grant {
	g.Fence, g.Acquired, g.Expires = 0, time.Time{}, time.Time{}
	return g
}

// sort says which sort of error it is.
func sort(err error) string {
	for _, s := range []error{locks.ErrConflict, locks.ErrNotFound, locks.ErrValidation} {
		if errors.Is(err, s) {
			return s.Error()
		}
	}
	return fmt.Sprint(err)
}

func (p *program) acquire(s locks.Store) bool {
	var requests []locks.Request
	for range 1 + p.random.IntN(3) {
		q := p.request()
		if !slices.ContainsFunc(requests, func(r locks.Request) bool { return r.ID == q.ID }) {
			requests = append(requests, q)
		}
	}
	if p.asks.IsZero() {
		p.asks = time.Now()
	}
	got, err := s.Acquire(p.f.t.Context(), p.name, requests)
	if err != nil {
		return p.failed(err)
	}
	if p.begin.IsZero() {
		p.begin = got.Now
	}
	if got.Now.Sub(p.begin) > locks.WaiterLife*2/3 {
		return false // too slow to be compared
	}
	want := p.model.Acquire(p.now, "", requests)
	var a, b []answered
	for i := range requests {
		for _, side := range []struct {
			from locks.Answer
			to   *[]answered
		}{{got.Answers[i], &a}, {want.Answers[i], &b}} {
			x := answered{side.from.Granted, side.from.Place, side.from.Holder, sort(side.from.Err), stable(side.from.Grant)}
			x.Holder = "" // any of them
			if p.f.Store.Traits().Simple {
				x.Place = 0 // a step that is done twice gives requests that do not wait another ticket
			}
			*side.to = append(*side.to, x)
		}
	}
	return p.same(fmt.Sprintf("acquire %+v", requests), a, b)
}

func (p *program) release(s locks.Store) bool {
	ref := p.ref()
	var data *string
	if p.one(3) {
		data = ptr("released")
	}
	got, err := s.Release(p.f.t.Context(), p.name, ref, data)
	if err != nil {
		return p.failed(err)
	}
	want := p.model.Release(p.now, ref, data)
	p.gone()
	return p.same(fmt.Sprintf("release %+v", ref), got, want)
}

// gone has the model forget a record that was deleted, but for its fence.
func (p *program) gone() {
	if !p.model.Exists {
		p.model = &book.Resource{Name: p.name, Fence: p.model.Fence}
	}
}

func (p *program) renew(s locks.Store) bool {
	q := locks.Renewal{Name: p.name, Ref: p.ref(), Lease: 2 * time.Hour}
	if p.one(2) {
		q.NewVersion = ID()
	}
	if p.one(3) {
		q.Data = ptr("renewed")
	}
	got, err := s.Renew(p.f.t.Context(), []locks.Renewal{q})
	if err != nil {
		return p.failed(err)
	}
	want := p.model.Renew(p.now, &q)
	return p.same(fmt.Sprintf("renew %+v", q), fmt.Sprint(got[0].Verdict, stable(got[0].Grant)), fmt.Sprint(want.Verdict, stable(want.Grant)))
}

func (p *program) create(s locks.Store) bool {
	q := locks.Record{Name: p.name, Kind: p.kind, Size: 1 + p.random.IntN(4), Lease: time.Hour, Fair: p.one(2), Version: ID(), CreatedBy: "maker"}
	if p.one(2) {
		q.Data = ptr("created")
	}
	_, err := s.Create(p.f.t.Context(), q)
	want := p.model.Create(p.now, &q)
	return p.same(fmt.Sprintf("create %+v", q), sort(err), sort(want))
}

func (p *program) remove(s locks.Store) bool {
	err := s.Delete(p.f.t.Context(), p.name, "")
	want := p.model.Delete(p.now, "")
	p.gone()
	return p.same("delete", sort(err), sort(want))
}

func (p *program) revoke(s locks.Store) bool {
	ref, force := p.ref(), p.one(3)
	got, err := s.Revoke(p.f.t.Context(), p.name, ref, force)
	if err != nil {
		return p.failed(err)
	}
	return p.same(fmt.Sprintf("revoke %+v, force %v", ref, force), got, p.model.Revoke(p.now, ref, force))
}

func (p *program) get(s locks.Store) bool {
	got, err := s.Get(p.f.t.Context(), p.name)
	want, wantErr := p.model.Record(p.now)
	if got.Fence < p.fence && err == nil {
		return p.failed(fmt.Errorf("the fence went back from %d to %d", p.fence, got.Fence))
	}
	p.fence = max(p.fence, got.Fence)
	return p.same("get", sort(err)+describe(got), sort(wantErr)+describe(want))
}

// describe writes what does not depend on the time.
func describe(r locks.Record) string {
	data := "none"
	if r.Data != nil {
		data = *r.Data
	}
	var holders []locks.Grant
	for _, g := range r.Holders {
		holders = append(holders, stable(g))
	}
	return fmt.Sprint(" ", r.Kind, r.Size, r.Busy, r.Waiters, r.Lease, r.Fair, r.DeleteOnRelease, r.Version, data, r.CreatedBy, r.UpdatedBy, holders)
}
