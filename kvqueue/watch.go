package kvqueue

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
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
	prefixes := [][]byte{lay.all("n"), lay.all("r"), lay.all("l"), lay.all("s"), m.q.lay.claims(m.id)}
	pause := async.Jitter(0.5, async.Backoff(10*time.Millisecond, time.Second))
	short := 0 // watches in a row that have ended at once
	for failures := 1; ; failures++ {
		asked := time.Now()
		rev, err := m.list(ctx)
		if err == nil {
			if failures = 1; short < 2 {
				m.q.asked(watching, nil)
			}
			began := time.Now()
			if err = m.watch(ctx, rev, prefixes); time.Since(began) > time.Second {
				short = 0
			} else if short++; short < 2 {
				err = nil // the next look at all there is says whether the store is in trouble
			}
		}
		if ctx.Err() == nil && err != nil {
			m.failWatching(asked, err)
		}
		if sleep := async.Sleep(ctx, pause(failures)); sleep != nil {
			return sleep
		}
	}
}

// watch takes in changes until the watch ends, and returns why.
func (m *member) watch(ctx context.Context, rev Rev, prefixes [][]byte) error {
	for e, err := range m.q.kv.Watch(ctx, rev, prefixes...) {
		if err != nil {
			return ignoreCompacted(err)
		}
		m.see(ctx, e)
	}
	return nil
}

// ignoreCompacted is nil for a watch that has come too late: what it has missed is listed.
func ignoreCompacted(err error) error {
	if errors.Is(err, ErrCompacted) {
		return nil
	}
	return err
}

// failWatching says that the watch fails. Nothing can be claimed if nothing was ever listed.
func (m *member) failWatching(asked time.Time, err error) {
	m.q.asked(watching, err)
	if _, _, listed := m.stand(); !listed {
		m.q.refuseTries(asked, err)
	}
}

// see takes in one change. A key that is none of this package's is left alone.
func (m *member) see(ctx context.Context, e Event) {
	lay := m.q.lay
	switch {
	case bytes.HasPrefix(e.Key, lay.all("n")):
		m.wake()
	case bytes.HasPrefix(e.Key, lay.all("r")):
		m.seeRequest(e)
	case bytes.HasPrefix(e.Key, lay.claims(m.id)):
		m.seeClaim(e)
	case bytes.HasPrefix(e.Key, lay.all("s")):
		if id, ok := lay.sessionIn("s", e.Key); ok && !e.Deleted {
			m.mu.Lock()
			m.members[id] = e.Rev
			m.mu.Unlock()
		}
	case e.Deleted:
		if id, ok := lay.sessionIn("l", e.Key); ok {
			m.mu.Lock()
			delete(m.members, id)
			m.mu.Unlock()
			m.gone(ctx, id)
		}
	}
}

func (m *member) seeRequest(e Event) {
	defer m.wake()
	if e.Deleted {
		m.fell(string(e.Key))
	} else if r, err := decodeStanding(e.Pair); err == nil {
		m.stands(r)
	}
}

func decodeStanding(p Pair) (r standing, err error) {
	if len(p.Value) < 9 {
		return r, fmt.Errorf("kvqueue: the store holds a request that this package did not write: %q: %x", p.Key, p.Value)
	}
	want, _ := binary.Uvarint(p.Value[8:])
	return standing{string(p.Key), p.Rev, int64(binary.BigEndian.Uint64(p.Value)), int(min(want, 1000))}, nil
}

// seeClaim takes in that something was claimed for us, or a claim of ours has ended.
func (m *member) seeClaim(e Event) {
	r, err := m.q.lay.claimIn(m.id, e.Pair)
	if !e.Deleted && err != nil || len(e.Key) != len(m.q.lay.claims(m.id))+keySize {
		return
	}
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
		return
	}
	switch {
	case h == nil:
		m.arriveLocked(r)
	case h.rev >= r.rev: // it was handed over
	case h.busy:
		h.seen = &r
	default:
		m.arriveLocked(r)
	}
}

// arriveLocked notes what others have claimed for us.
func (m *member) arriveLocked(r ready) {
	m.arrived[r.rev] = append(m.arrived[r.rev], r)
	if len(m.arrived[r.rev]) >= r.together {
		m.wake()
	}
}

// claimIn returns a claim of a session that the store shows.
func (l layout) claimIn(id int64, p Pair) (ready, error) {
	if len(p.Key) != len(l.claims(id))+keySize {
		return ready{}, foreign(p.Key)
	}
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
	m.listRequests(results[0])
	m.listClaims(results[3], rev)
	m.listSessions(ctx, results[1], results[2])
	m.wake()
	return rev, nil
}

// listSessions takes in which sessions live, and gives back what others had claimed.
func (m *member) listSessions(ctx context.Context, live, claiming Result) {
	alive, members := map[int64]bool{}, map[int64]Rev{}
	var ended []int64
	for _, p := range live.Pairs {
		if id, ok := m.q.lay.sessionIn("l", p.Key); ok {
			alive[id] = true
		}
	}
	for _, p := range claiming.Pairs {
		id, ok := m.q.lay.sessionIn("s", p.Key)
		switch {
		case ok && alive[id]:
			members[id] = p.Rev
		case ok:
			ended = append(ended, id)
		}
	}
	m.mu.Lock()
	m.members = members
	m.mu.Unlock()
	if !alive[m.id] {
		ended = append(ended, m.id)
	}
	for _, id := range ended {
		m.gone(ctx, id)
	}
}

func (m *member) listRequests(r Result) {
	var requests []standing
	for _, p := range r.Pairs {
		if s, err := decodeStanding(p); err == nil {
			requests = append(requests, s)
		}
	}
	slices.SortFunc(requests, older)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests, m.listed = requests, true
}

// listClaims takes in what is claimed for us: what nobody has told us of has arrived, and
// what is not listed, was claimed before the revision of the list, and is not on its way,
// has ended.
func (m *member) listClaims(r Result, rev Rev) {
	m.mu.Lock()
	defer m.mu.Unlock()
	listed := map[Key]bool{}
	news := map[Rev][]ready{}
	for _, p := range r.Pairs {
		c, err := m.q.lay.claimIn(m.id, p)
		if err != nil {
			continue
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
}
