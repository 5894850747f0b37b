package kvqueue

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// An Audit is what a store holds of a queue, as [Queue.Audit] found it.
type Audit struct {
	Revision Rev    `json:"revision"` // of the store
	Policy   Policy `json:"policy"`
	Floor    uint64 `json:"floor"` // no item has a smaller hint
	Length
	Oldest   time.Time      `json:"oldest,omitzero"` // when the first ready item of no group was added; zero: not known
	Bytes    int64          `json:"bytes"`           // of the payloads of all items
	Groups   int            `json:"groups"`          // that have items which are ready or claimed
	Takers   int            `json:"takers"`          // sessions that live, and have waited for items
	Sessions []SessionAudit `json:"sessions"`
	// Faults say what should not be. A fault that was there all the time is told; what
	// came and went while the keys were read is not.
	Faults []string `json:"faults"`
}

// A SessionAudit is a process that has a handle on a queue, or had one.
type SessionAudit struct {
	ID    int64  `json:"id"`
	Owner string `json:"owner"`
	// Alive says that the store has heard of it in time. Items that another had claimed go back
	// as soon as somebody waits for items.
	Alive  bool `json:"alive"`
	Claims int  `json:"claims"`
}

// Audit reads every key of the queue, some at a time, and compares them: an item is ready,
// claimed or dead, and only one of these, and has a payload; a payload has an item; no ready
// item is below the floor; a claim has a session; of a group one item is claimed at most, and the group is found
// when none is; an id names an item, or one that was, and goes some day. Others may use the queue meanwhile. The
// keys of all items are in memory while it lasts.
func (q *Queue) Audit(ctx context.Context) (Audit, error) {
	var faults map[string]bool
	for range 3 { // what is only on its way is not there again
		a, err := q.audit(ctx)
		if err != nil {
			return a, err
		}
		a.Faults = slices.DeleteFunc(a.Faults, func(f string) bool { return faults != nil && !faults[f] })
		if len(a.Faults) == 0 {
			return a, nil
		}
		faults = map[string]bool{}
		for _, f := range a.Faults {
			faults[f] = true
		}
	}
	a, err := q.audit(ctx)
	a.Faults = slices.DeleteFunc(a.Faults, func(f string) bool { return !faults[f] })
	return a, err
}

// An auditor compares what it reads.
type auditor struct {
	*Queue
	Audit
	places   map[Key]string // where an item is
	payloads map[Key]bool
	sessions map[int64]*SessionAudit
	groups   map[string]*groupAudit
}

func (q *Queue) audit(ctx context.Context) (Audit, error) {
	a := &auditor{Queue: q, places: map[Key]string{}, payloads: map[Key]bool{}, sessions: map[int64]*SessionAudit{},
		groups: map[string]*groupAudit{}, Audit: Audit{Sessions: []SessionAudit{}, Faults: []string{}}} // in JSON they are lists
	steps := []func(context.Context) error{
		a.readForeign, a.readHead, a.readItems, a.readGroups, a.readClaims, a.readPayloads, a.readIDs,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return a.Audit, err
		}
	}
	a.judgeGroups()
	for k, place := range a.places {
		if !a.payloads[k] {
			a.fault("%v is %s, and has no payload", k, place)
		}
	}
	for k := range a.payloads {
		if a.places[k] == "" {
			a.fault("%v has a payload, and is not ready, claimed or dead", k)
		}
	}
	for _, s := range a.sessions {
		a.Sessions = append(a.Sessions, *s)
	}
	slices.SortFunc(a.Sessions, func(x, y SessionAudit) int { return cmp.Compare(x.ID, y.ID) })
	slices.Sort(a.Faults)
	return a.Audit, nil
}

func (a *auditor) fault(format string, args ...any) {
	a.Faults = append(a.Faults, fmt.Sprintf(format, args...))
}

// readForeign names the keys that this package did not write, but for those among items and
// claims: the steps that read these come to them.
func (a *auditor) readForeign(ctx context.Context) error {
	s, err := a.read(ctx)
	if err != nil {
		return err
	}
	begin := []byte(a.lay.root)
	for _, kind := range []string{"d", "i", "j", "q", "w", "x"} {
		if err := a.nameForeign(ctx, begin, a.lay.all(kind)); err != nil {
			return err
		}
		if begin = a.lay.from(kind, s.now()+1); kind == "w" || kind == "i" {
			begin = after(a.lay.all(kind))
		}
	}
	return a.nameForeign(ctx, begin, after([]byte(a.lay.root)))
}

func (a *auditor) nameForeign(ctx context.Context, begin, end []byte) error {
	for {
		results, _, err := a.kv.Read(ctx, Range{Begin: begin, End: end, Limit: pageSize, KeysOnly: true})
		if err != nil {
			return err
		}
		for _, p := range results[0].Pairs {
			begin = append(bytes.Clone(p.Key), 0)
			a.ours(p.Key)
		}
		if !results[0].More {
			return nil
		}
	}
}

// ours reports whether this package may have written a key, and names one that it has not.
func (a *auditor) ours(key []byte) bool {
	known := a.lay.knows(key)
	if !known {
		a.Faults = append(a.Faults, foreign(key).Error())
	}
	return known
}

// readHead reads what there is but once, the sessions, and their places.
func (a *auditor) readHead(ctx context.Context) error {
	var ranges []Range
	for _, kind := range []string{"l", "s", "r"} {
		ranges = append(ranges, Range{Begin: a.lay.all(kind), End: after(a.lay.all(kind))})
	}
	s, err := a.read(ctx, append(ranges, Range{Begin: a.lay.policy()})...)
	if err != nil {
		return err
	}
	stored := policyOf(s.of[3])
	if a.Audit.Policy = stored.Policy; stored.rev != stored.any {
		_, err := decodePolicy(s.of[3].Pairs[0])
		a.Faults = append(a.Faults, err.Error())
	}
	a.Revision, a.Floor = s.rev, s.head.floor
	for _, p := range s.of[2].Pairs {
		if _, _, err := a.lay.demandIn(p); err != nil {
			a.Faults = append(a.Faults, err.Error())
		}
	}
	for i, of := range s.of[:2] {
		for _, p := range of.Pairs {
			id, ok := a.lay.sessionIn([]string{"l", "s"}[i], p.Key)
			if !ok {
				continue
			}
			if a.sessions[id] == nil {
				a.sessions[id] = &SessionAudit{ID: id, Owner: string(p.Value), Alive: i == 0}
			}
			if i == 1 && a.sessions[id].Alive {
				a.Takers++
			}
		}
	}
	return nil
}

// readItems reads what is ready, and what is dead.
func (a *auditor) readItems(ctx context.Context) error {
	for _, of := range [][2]string{{"q", "ready"}, {"x", "dead"}} {
		kind, place := of[0], of[1]
		s, err := a.read(ctx)
		if err != nil {
			return err
		}
		for p, err := range a.span(ctx, kind, 0, s.now(), false) {
			if err != nil {
				return err
			}
			if !a.ours(p.Key) {
				continue
			}
			k := keyOf(p.Key)
			a.item(k, place, p.Value)
			if kind == "x" {
				a.Length.Dead++
				continue
			}
			if a.Ready++; a.Ready == 1 {
				rec, _, _ := decodeRecord(p.Value)
				a.Oldest = rec.addedAt()
			}
			if k.hint() < s.head.floor {
				a.fault("%v is ready, and below the floor %d: nobody finds it", k, s.head.floor)
			}
		}
	}
	return nil
}

// item notes that an item is in a place.
func (a *auditor) item(k Key, place string, value []byte) {
	rec, _, err := decodeRecord(value)
	if err != nil {
		a.fault("%v: %v", k, err)
	}
	a.Bytes += int64(rec.size)
	if other := a.places[k]; other != "" {
		a.fault("%v is %s and %s", k, other, place)
	}
	a.places[k] = place
}

// readClaims reads what is claimed.
func (a *auditor) readClaims(ctx context.Context) error {
	for begin, end := a.lay.all("w"), after(a.lay.all("w")); ; {
		results, _, err := a.kv.Read(ctx, Range{Begin: begin, End: end, Limit: pageSize})
		if err != nil {
			return err
		}
		for _, p := range results[0].Pairs {
			begin = append(bytes.Clone(p.Key), 0)
			if !a.ours(p.Key) {
				continue
			}
			k := keyOf(p.Key)
			a.Claimed++
			a.item(k, "claimed", p.Value)
			if _, r, _ := a.lay.claimOf(p, false); r.rec.group != "" {
				g := a.group(r.rec.group)
				g.claims = append(g.claims, r)
			}
			id, ok := a.lay.sessionIn("w", p.Key[:len(p.Key)-keySize-1])
			if s := a.sessions[id]; ok && s != nil {
				s.Claims++
			} else {
				a.fault("%v is claimed by the session %x, which is unknown: nobody gives it back", k, uint64(id))
			}
		}
		if !results[0].More {
			return nil
		}
	}
}

func (a *auditor) readPayloads(ctx context.Context) error {
	s, err := a.read(ctx)
	if err != nil {
		return err
	}
	for p, err := range a.span(ctx, "d", 0, s.now(), true) {
		if err != nil {
			return err
		}
		if a.ours(p.Key) {
			a.payloads[keyOf(p.Key)] = true
		}
	}
	return nil
}
