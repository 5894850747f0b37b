package memkv

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ambit-go/ambit/kvqueue"
)

// A session ends when its timer fires. All but store, id and ttl is guarded by inner.mu.
type session struct {
	store *inner
	id    int64
	ttl   time.Duration
	timer *time.Timer
	until time.Time
	ended bool
	keys  map[string]struct{} // that vanish with it
}

// Session begins a session.
func (s *inner) Session(ctx context.Context, ttl time.Duration) (kvqueue.Session, error) {
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
	s.sessions[x] = struct{}{}
	return x, nil
}

func (x *session) ID() int64 { return x.id }

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
	if !x.store.closed {
		x.endLocked()
	}
	return nil
}

// late ends a session that was not renewed.
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
	x.endLocked()
}

// endLocked deletes the keys of a session.
func (x *session) endLocked() {
	if x.ended {
		return
	}
	var writes []kvqueue.Write
	for _, key := range slices.Sorted(maps.Keys(x.keys)) {
		writes = append(writes, kvqueue.Write{Key: []byte(key), Delete: true})
	}
	x.ended = true
	x.timer.Stop()
	delete(x.store.sessions, x)
	x.store.writeLocked(writes)
}
