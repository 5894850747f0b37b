package proof

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/kvqueue"
)

// This file is how a history sees claims. A claim is done between the look of its handle at what
// is ready and the answer to its transaction. It may be handed over much later, to a caller that
// has come after that, or to nobody.

// A looking store is what a handle uses. It knows when the handle has looked what is ready last.
type looking struct {
	kvqueue.KV
	s    Scribe
	who  string
	root string
	last atomic.Int64
}

// A knowing store is between a handle and its store, behind everything that loses answers: it knows
// what came of the transactions.
type knowing struct {
	kvqueue.KV
	s    Scribe
	who  string
	root string
}

// lookKey is that of the time of the look in the context of a transaction.
type lookKey struct{}

// noted is a store for one handle on the queue of a name. link is what lies between the two stores
// that take notes: faults, and a network.
func noted(s Scribe, who, name string, kv kvqueue.KV, link func(kvqueue.KV) kvqueue.KV) kvqueue.KV {
	root := "kvq/" + name + "/"
	return &looking{KV: link(&knowing{kv, s, who, root}), s: s, who: who, root: root}
}

func (l *looking) Read(ctx context.Context, ranges ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev, error) {
	for _, r := range ranges {
		if bytes.HasPrefix(r.Begin, []byte(l.root+"q/")) {
			l.last.Store(l.s.Tick())
			break
		}
	}
	return l.KV.Read(ctx, ranges...)
}

func (l *looking) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	if err := ctx.Err(); err != nil { // it has looked for a session that has ended
		return 0, err
	}
	return l.KV.Commit(context.WithValue(ctx, lookKey{}, l.last.Load()), guards, writes)
}

func (l *looking) Session(ctx context.Context, ttl time.Duration) (kvqueue.Session, error) {
	s, err := l.KV.Session(ctx, ttl)
	if err == nil {
		l.s.Note(Entry{Kind: Begun, Who: l.who, Session: fmt.Sprintf("%016x", uint64(s.ID()))})
	}
	return s, err
}

func (k *knowing) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	claims := k.claims(writes)
	if len(claims) == 0 {
		return k.KV.Commit(ctx, guards, writes)
	}
	look, _ := ctx.Value(lookKey{}).(int64)
	id := k.s.Tick()
	k.s.Note(Entry{Kind: Sent, ID: id, Who: k.who, At: look, Claims: claims})
	rev, err := k.KV.Commit(ctx, guards, writes)
	switch {
	case err == nil:
		k.s.Note(Entry{Kind: Answered, ID: id, Fence: int64(rev), At: k.s.Tick()})
	case !errors.Is(err, kvqueue.ErrUnknown):
		k.s.Note(Entry{Kind: Undone, ID: id})
	}
	return rev, err
}

// claims are those that a transaction makes.
func (k *knowing) claims(writes []kvqueue.Write) (claims []Sight) {
	for _, w := range writes {
		claim, is := bytes.CutPrefix(w.Key, []byte(k.root+"w/"))
		if is && !w.Delete && len(claim) == 37 { // a session, a slash and a key
			claims = append(claims, Sight{string(claim[:16]), kvqueue.Key(claim[17:]).String()})
		}
	}
	return claims
}
