package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/ambit-go/ambit/kvqueue"
)

// silent is how long a store may take to answer before people are told.
const silent = 2 * time.Second

// A listener tells people once when the store does not answer, and once when it does again:
// what waits for it says nothing meanwhile.
type listener struct {
	kvqueue.KV
	notef func(format string, args ...any)

	mu   sync.Mutex
	away bool // they were told
}

// heardStore opens the store of a URL, and has notef told while it does not answer.
func heardStore(ctx context.Context, url string, makes bool, how access, notef func(string, ...any)) (*store, error) {
	l := &listener{notef: notef}
	late := time.AfterFunc(silent, func() { l.gone(fmt.Errorf("it takes longer than %v", silent)) })
	s, err := openStore(ctx, url, makes, how)
	late.Stop()
	if err != nil {
		return nil, err
	}
	l.KV = s.kv
	s.kv = l
	return s, nil
}

// pending waits for the answer of a call. The function that it returns is told which that was.
func (l *listener) pending() (answered func(error)) {
	t := time.AfterFunc(silent, l.late)
	return func(err error) {
		t.Stop()
		switch {
		case err == nil || answers(err):
			l.back()
		case errors.Is(err, context.Canceled), errors.Is(err, kvqueue.ErrClosed): // nobody waits for it any more
		default:
			l.gone(err)
		}
	}
}

// answers reports whether an error is what a store says that can be reached.
func answers(err error) bool {
	for _, answer := range []error{kvqueue.ErrConflict, kvqueue.ErrNoSpace, kvqueue.ErrCompacted, kvqueue.ErrSessionLost} {
		if errors.Is(err, answer) {
			return true
		}
	}
	return errors.As(err, new(*kvqueue.InvalidError))
}

func (l *listener) late() {
	err := l.Waits()
	if err == nil {
		err = fmt.Errorf("it takes longer than %v", silent)
	}
	l.gone(err)
}

// Waits returns an error that says for what calls wait now, if the store knows.
func (l *listener) Waits() error {
	if store, ok := l.KV.(interface{ Waits() error }); ok {
		return store.Waits()
	}
	return nil
}

func (l *listener) gone(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.away {
		l.away = true
		l.notef("the store does not answer: %v", err)
	}
}

func (l *listener) back() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away {
		l.away = false
		l.notef("the store answers again")
	}
}

func (l *listener) Read(ctx context.Context, ranges ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev, error) {
	answered := l.pending()
	results, rev, err := l.KV.Read(ctx, ranges...)
	answered(err)
	return results, rev, err
}

func (l *listener) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	inner := make([]kvqueue.Write, len(writes))
	for i, w := range writes {
		if s, ok := w.Session.(*heardSession); ok {
			w.Session = s.Session
		}
		inner[i] = w
	}
	answered := l.pending()
	rev, err := l.KV.Commit(ctx, guards, inner)
	answered(err)
	return rev, err
}

func (l *listener) Watch(ctx context.Context, after kvqueue.Rev, prefixes ...[]byte) iter.Seq2[kvqueue.Event, error] {
	return func(yield func(kvqueue.Event, error) bool) {
		for e, err := range l.KV.Watch(ctx, after, prefixes...) {
			if err != nil && !answers(err) && ctx.Err() == nil {
				l.gone(err)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (l *listener) Session(ctx context.Context, ttl time.Duration) (kvqueue.Session, error) {
	answered := l.pending()
	s, err := l.KV.Session(ctx, ttl)
	answered(err)
	if err != nil {
		return nil, err
	}
	return &heardSession{s, l}, nil
}

// A heardSession is a session whose renewals are listened to.
type heardSession struct {
	kvqueue.Session
	l *listener
}

func (s *heardSession) Renew(ctx context.Context) error {
	answered := s.l.pending()
	err := s.Session.Renew(ctx)
	answered(err)
	return err
}
