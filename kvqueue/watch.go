package kvqueue

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/async"
)

// This file is what a member sees of the others: it lists once, and follows one watch from
// there. The member that assigns sees the claims of all, any other only those of its own session.

// follow keeps what the member knows up to date, until ctx ends.
func (m *member) follow(ctx context.Context) error {
	pause := async.Jitter(0.5, async.Backoff(10*time.Millisecond, time.Second))
	short := 0 // watches in a row that have ended at once
	for failures := 1; ; failures++ {
		asked := time.Now()
		rev, claims, err := m.list(ctx)
		if err == nil {
			if failures = 1; short < 2 {
				m.q.asked(watching, nil)
			}
			began := time.Now()
			err = m.watch(ctx, rev, claims)
			switch {
			case errors.Is(err, errAgain): // it assigns from now on, and has to know of all claims
				continue
			case time.Since(began) > time.Second:
				short = 0
			default:
				if short++; short < 2 {
					err = nil // the next look at all there is says whether the store is in trouble
				}
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
func (m *member) watch(ctx context.Context, rev Rev, claims []byte) error {
	lay := m.q.lay
	prefixes := [][]byte{lay.all("n"), lay.all("r"), lay.all("l"), lay.all("s"), lay.policy(), claims}
	if m.q.update != nil { // else the one that assigns sees all claims end
		prefixes = append(prefixes, lay.all("g"))
	}
	for e, err := range m.q.kv.Watch(ctx, rev, prefixes...) {
		if err != nil {
			return ignoreCompacted(err)
		}
		m.see(ctx, e)
		if !bytes.Equal(claims, m.watched()) {
			return errAgain
		}
	}
	return nil
}

// watched is with what the keys of the claims begin that this member has to know.
func (m *member) watched() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.oldestLocked() && m.q.update == nil {
		return m.q.lay.all("w")
	}
	return m.q.lay.claims(m.id)
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
	if listed, _ := m.stand(); !listed {
		m.q.refuseTries(asked, err)
	}
}

// see takes in one change. A key that is none of this package's is left alone.
func (m *member) see(ctx context.Context, e Event) {
	lay := m.q.lay
	switch {
	case bytes.HasPrefix(e.Key, lay.all("n")):
		m.wake()
	case bytes.HasPrefix(e.Key, lay.all("g")):
		if _, _, item, ok := lay.groupIn(e.Key); ok && !item && e.Deleted { // a group is not held any more
			m.wake()
		}
	case bytes.HasPrefix(e.Key, lay.all("r")):
		m.seePlaces(e)
	case bytes.HasPrefix(e.Key, lay.all("w")):
		m.seeClaim(e)
	case bytes.HasPrefix(e.Key, lay.all("s")):
		if id, ok := lay.sessionIn("s", e.Key); ok && !e.Deleted {
			m.mu.Lock()
			m.members[id] = e.Rev
			m.mu.Unlock()
			m.wake() // its places may have come before
		}
	case bytes.Equal(e.Key, lay.policy()):
		m.q.learn(policyOf(Result{Pairs: []Pair{e.Pair}}))
	case e.Deleted:
		if id, ok := lay.sessionIn("l", e.Key); ok {
			m.mu.Lock()
			delete(m.members, id)
			delete(m.waits, id)
			m.mu.Unlock()
			m.gone(ctx, id)
		}
	}
}

func (m *member) seePlaces(e Event) {
	id, d, err := m.q.lay.demandIn(e.Pair)
	if err != nil && !e.Deleted {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.places[id] = d; e.Deleted {
		delete(m.places, id)
		d = demand{rev: e.Rev}
	}
	if id == m.id {
		m.toldLocked(d)
	}
	m.wake()
}

// demandIn returns the demand of a session, as the store shows it.
func (l layout) demandIn(p Pair) (id int64, d demand, err error) {
	id, ok := l.sessionIn("r", p.Key)
	places, size := binary.Uvarint(p.Value)
	if !ok || size <= 0 {
		return id, d, fmt.Errorf("kvqueue: the store holds a request that this package did not write: %q: %x", p.Key, p.Value)
	}
	batch, _ := binary.Uvarint(p.Value[size:])
	return id, demand{int(min(places, 1_000_000)), int(min(batch, 1_000_000)), p.Rev}, nil
}

// seeClaim takes in that something was claimed, or a claim has ended.
func (m *member) seeClaim(e Event) {
	id, r, err := m.q.lay.claimOf(e.Pair, e.Deleted)
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.Rev <= m.at { // it was listed, or has ended since
		return
	}
	if m.shown = max(m.shown, e.Rev); e.Deleted {
		m.endedLocked(id, r.key, e.Rev)
	} else {
		m.claimedLocked(id, r)
	}
	m.wake()
}

// claimOf returns a claim that the store shows, and its session; of one that has ended only its key.
func (l layout) claimOf(p Pair, ended bool) (id int64, r ready, err error) {
	if !l.knows(p.Key) {
		return 0, r, foreign(p.Key)
	}
	id, _ = l.sessionIn("w", p.Key[:len(p.Key)-keySize-1])
	r = ready{key: keyOf(p.Key), rev: p.Rev}
	if !ended {
		var more []byte
		r.rec, more, err = decodeRecord(p.Value)
		n, size := binary.Uvarint(more)
		r.together, r.rec.group = max(int(n), 1), string(more[max(size, 0):])
	}
	return id, r, err
}

// list takes in all that there is, and returns the revision from which it is to be watched, and with
// what the keys of the claims begin that are to be watched.
func (m *member) list(ctx context.Context) (rev Rev, claims []byte, err error) {
	lay := m.q.lay
	var ranges []Range
	for _, kind := range []string{"r", "l", "s"} {
		ranges = append(ranges, Range{Begin: lay.all(kind), End: after(lay.all(kind))})
	}
	results, rev, err := m.q.kv.Read(ctx, append(ranges, Range{Begin: lay.policy()})...)
	if err != nil {
		return 0, nil, err
	}
	m.q.unlearn(rev)
	m.q.learn(policyOf(results[3]))
	m.listPlaces(results[0], rev)
	m.listSessions(ctx, results[1], results[2])
	claims = m.watched()
	of, at, err := m.q.kv.Read(ctx, Range{Begin: claims, End: after(claims)})
	if err != nil {
		return 0, nil, err
	}
	m.listClaims(of[0], at)
	m.mu.Lock()
	m.listed, m.all = true, bytes.Equal(claims, lay.all("w"))
	m.mu.Unlock()
	m.wake()
	return rev, claims, nil
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

func (m *member) listPlaces(r Result, at Rev) {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.places)
	for _, p := range r.Pairs {
		if id, d, err := m.q.lay.demandIn(p); err == nil {
			m.places[id] = d
		}
	}
	if at < m.shown { // an older state of the store was restored
		m.told.rev, m.fewer = 0, 0
	}
	own := m.places[m.id]
	own.rev = at
	m.toldLocked(own)
}

// listClaims takes in what is claimed at a revision: what is not there and was claimed before has
// ended.
func (m *member) listClaims(r Result, at Rev) {
	there := map[int64]map[Key]bool{}
	m.mu.Lock()
	defer m.mu.Unlock()
	if at < m.shown { // an older state of the store was restored
		clear(m.claims)
	}
	for _, p := range r.Pairs {
		id, c, err := m.q.lay.claimOf(p, false)
		if err != nil { // Audit names it
			continue
		}
		if there[id] == nil {
			there[id] = map[Key]bool{}
		}
		there[id][c.key] = true
		m.claimedLocked(id, c)
	}
	for id, claims := range m.claims {
		for k := range claims {
			if !there[id][k] {
				m.endedLocked(id, k, at+1)
			}
		}
	}
	m.at, m.shown = at, at
}
