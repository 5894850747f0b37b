package kvqueue

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ambit-go/ambit/async"
)

// This file is what a member sees of the others: it lists once, and follows one watch from
// there.

// follow keeps what the member knows up to date, until ctx ends.
func (m *member) follow(ctx context.Context) error {
	lay := m.q.lay
	prefixes := [][]byte{lay.all("n"), lay.all("r"), lay.all("l"), m.q.lay.claims(m.id)}
	pause := async.Jitter(0.5, async.Backoff(10*time.Millisecond, time.Second))
	for failures := 1; ; failures++ {
		rev, err := m.list(ctx)
		if err == nil {
			failures = 1
			for e, watchErr := range m.q.kv.Watch(ctx, rev, prefixes...) {
				if err = watchErr; err != nil {
					break
				}
				if err = m.see(ctx, e); err != nil {
					break
				}
			}
		}
		if sleep := async.Sleep(ctx, pause(failures)); sleep != nil {
			return sleep
		}
	}
}

// see takes in one change.
func (m *member) see(ctx context.Context, e Event) error {
	lay := m.q.lay
	switch {
	case bytes.HasPrefix(e.Key, lay.all("n")):
		m.wake()
	case bytes.HasPrefix(e.Key, lay.all("r")):
		return m.seeRequest(e)
	case bytes.HasPrefix(e.Key, lay.claims(m.id)):
		return m.seeClaim(e)
	case e.Deleted:
		id, err := sessionOf(e.Key)
		if err != nil {
			return err
		}
		m.gone(ctx, id)
	}
	return nil
}

func (m *member) seeRequest(e Event) error {
	defer m.wake()
	if e.Deleted {
		m.fell(string(e.Key))
		return nil
	}
	r, err := decodeStanding(e.Pair)
	if err == nil {
		m.stands(r)
	}
	return err
}

func decodeStanding(p Pair) (r standing, err error) {
	if len(p.Value) < 9 {
		return r, fmt.Errorf("kvqueue: the store holds a request that this package did not write: %x", p.Value)
	}
	want, _ := binary.Uvarint(p.Value[8:])
	return standing{string(p.Key), p.Rev, int64(binary.BigEndian.Uint64(p.Value)), int(min(want, 1000))}, nil
}

// seeClaim takes in that something was claimed for us, or a claim of ours has ended.
func (m *member) seeClaim(e Event) error {
	k := keyOf(e.Key)
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.held[k]
	if e.Deleted {
		switch {
		case h == nil:
		case !h.busy && h.rev < e.Rev:
			delete(m.held, k)
		case h.busy:
			if h.ended = e.Rev; h.seen != nil && h.seen.rev < e.Rev {
				h.seen = nil
			}
		}
		return nil
	}
	r, err := decodeClaim(e.Pair)
	switch {
	case err != nil:
		return err
	case h == nil:
		m.arriveLocked(r)
	case h.rev >= r.rev: // it was handed over
	case h.busy:
		h.seen = &r
	default:
		m.arriveLocked(r)
	}
	return nil
}

// arriveLocked notes what others have claimed for us.
func (m *member) arriveLocked(r ready) {
	m.arrived[r.rev] = append(m.arrived[r.rev], r)
	if len(m.arrived[r.rev]) >= r.together {
		m.wake()
	}
}

// decodeClaim returns a claim that the store shows.
func decodeClaim(p Pair) (ready, error) {
	rec, more, err := decodeRecord(p.Value)
	if err != nil {
		return ready{}, err
	}
	n, _ := binary.Uvarint(more)
	return ready{key: keyOf(p.Key), rev: p.Rev, rec: rec, together: max(int(n), 1)}, nil
}

// list takes in all that there is, and returns the revision at which it was so.
func (m *member) list(ctx context.Context) (Rev, error) {
	lay := m.q.lay
	var ranges []Range
	for _, prefix := range [][]byte{lay.all("r"), lay.all("l"), lay.all("s"), lay.claims(m.id)} {
		ranges = append(ranges, Range{Begin: prefix, End: after(prefix)})
	}
	results, rev, err := m.q.kv.Read(ctx, ranges...)
	if err != nil {
		return 0, err
	}
	if err := m.listRequests(results[0]); err != nil {
		return 0, err
	}
	if err := m.listClaims(results[3], rev); err != nil {
		return 0, err
	}
	alive := map[int64]bool{}
	for _, p := range results[1].Pairs {
		id, err := sessionOf(p.Key)
		if err != nil {
			return 0, err
		}
		alive[id] = true
	}
	if !alive[m.id] {
		m.gone(ctx, m.id)
	}
	for _, p := range results[2].Pairs {
		id, err := sessionOf(p.Key)
		if err != nil {
			return 0, err
		}
		if !alive[id] {
			m.gone(ctx, id)
		}
	}
	m.wake()
	return rev, nil
}

func (m *member) listRequests(r Result) error {
	requests := make([]standing, len(r.Pairs))
	for i, p := range r.Pairs {
		s, err := decodeStanding(p)
		if err != nil {
			return err
		}
		requests[i] = s
	}
	slices.SortFunc(requests, older)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests, m.listed = requests, true
	return nil
}

// listClaims takes in what is claimed for us: what nobody has told us of has arrived, and
// what is not listed, was claimed before the revision of the list, and is not on its way,
// has ended.
func (m *member) listClaims(r Result, rev Rev) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	listed := map[Key]bool{}
	news := map[Rev][]ready{}
	for _, p := range r.Pairs {
		c, err := decodeClaim(p)
		if err != nil {
			return err
		}
		listed[c.key] = true
		switch h := m.held[c.key]; {
		case h == nil:
			news[c.rev] = append(news[c.rev], c)
		case h.rev >= c.rev:
		case h.busy:
			h.seen = &c
		default:
			news[c.rev] = append(news[c.rev], c)
		}
	}
	maps.Copy(m.arrived, news) // with those that are on their way they will be all of their transactions
	for k, h := range m.held {
		switch {
		case listed[k]:
		case h.busy:
			h.ended = rev
		case h.rev <= rev:
			delete(m.held, k)
		}
	}
	return nil
}
