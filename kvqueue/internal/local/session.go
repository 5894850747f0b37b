package local

import (
	"context"
	"sort"
	"time"

	"github.com/ambit-go/ambit/kvqueue"
)

// A session ends when its timer fires. All but store, id and ttl is guarded by Store.mu.
type session struct {
	store *Store
	id    int64
	ttl   time.Duration
	timer *time.Timer
	until time.Time
	ended bool
	keys  map[string]struct{} // that vanish with it
}

// Session begins a session.
func (s *Store) Session(ctx context.Context, ttl time.Duration) (kvqueue.Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	s.lastID++
	x := &session{store: s, id: s.lastID, ttl: ttl, until: time.Now().Add(ttl), keys: map[string]struct{}{}}
	x.timer = time.AfterFunc(ttl, x.late)
	s.sessions[x.id] = x
	return x, nil
}

func (x *session) ID() int64 { return x.id }

// Find returns the session of a store that has an ID, if it lives.
func Find(s *Store, id int64) (kvqueue.Session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, ok := s.sessions[id]
	return x, ok
}

// Renew has the TTL begin anew.
func (x *session) Renew(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	x.store.mu.Lock()
	defer x.store.mu.Unlock()
	switch {
	case x.store.closed:
		return errClosed
	case x.ended:
		return kvqueue.ErrSessionLost
	}
	x.until = time.Now().Add(x.ttl)
	x.timer.Reset(x.ttl)
	return nil
}

// End ends it.
func (x *session) End(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	x.store.mu.Lock()
	defer x.store.mu.Unlock()
	if x.store.closed {
		return nil // it ends when the store is opened again
	}
	return x.endLocked()
}

// late ends a session that was not renewed, and one whose end could not be written.
func (x *session) late() {
	x.store.mu.Lock()
	defer x.store.mu.Unlock()
	if x.ended || x.store.closed {
		return
	}
	if left := time.Until(x.until); left > 0 { // it was renewed as the timer fired
		x.timer.Reset(left)
		return
	}
	if x.endLocked() != nil {
		x.timer.Reset(time.Second)
	}
}

// endLocked deletes the keys of a session.
func (x *session) endLocked() error {
	if x.ended {
		return nil
	}
	keys := make([]string, 0, len(x.keys))
	for key := range x.keys {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	writes := make([]kvqueue.Write, len(keys))
	for i, key := range keys {
		writes[i] = kvqueue.Write{Key: []byte(key), Delete: true}
	}
	c := &change{writes: writes}
	x.store.commitLocked([]*change{c})
	if c.err != nil {
		return c.err
	}
	x.ended = true
	x.timer.Stop()
	delete(x.store.sessions, x.id)
	return nil
}

// attachLocked notes with which session a key vanishes after a write.
func (s *Store) attachLocked(w kvqueue.Write) {
	key := string(w.Key)
	if x := s.attached[key]; x != nil {
		delete(x.keys, key)
		delete(s.attached, key)
	}
	if x, ok := w.Session.(*session); ok && !w.Delete {
		x.keys[key] = struct{}{}
		s.attached[key] = x
	}
}
