package boltkv

import (
	"errors"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/kvqueue"
)

// This file is what is said on the socket: values of package gob, in both directions. A
// connection begins with a hello of each side. Then the client sends requests, and is
// answered in any order; a watch is answered again and again.

// protocol is the version of what is said.
const protocol = 1

type hello struct {
	Protocol int
	Limits   kvqueue.Limits // of the server
}

type op uint8

const (
	opRead op = iota
	opCommit
	opWatch
	opForget // a watch, whose request has this ID
	opSession
	opRenew
	opEnd
)

type request struct {
	ID       uint64
	Op       op
	Ranges   []kvqueue.Range
	Guards   []kvqueue.Guard
	Writes   []write
	After    kvqueue.Rev
	Prefixes [][]byte
	TTL      time.Duration
	Session  int64
}

// A write is a kvqueue.Write. A Session of 0 is none.
type write struct {
	Key, Value []byte
	Delete     bool
	Session    int64
}

// bounds are those of a range, as they are sent: to package gob an end that is empty is none, and
// then the range would be one key.
func bounds(begin, end []byte) (b, e []byte) {
	if end != nil && len(end) == 0 {
		return []byte{0}, []byte{0} // no key is from there to before there, either
	}
	return begin, end
}

type answer struct {
	ID      uint64
	Results []kvqueue.Result
	Rev     kvqueue.Rev
	Session int64
	Event   *kvqueue.Event
	Fault   *fault
}

// A fault is an error: what it matches, and its text.
type fault struct {
	Kind    int // place in kinds; -1: none of them
	Text    string
	Invalid *kvqueue.InvalidError
}

// kinds are the errors that a client has to tell from others. Their places are part of the
// protocol.
var kinds = []error{
	kvqueue.ErrConflict, kvqueue.ErrUnknown, kvqueue.ErrCompacted, kvqueue.ErrSessionLost, kvqueue.ErrNoSpace,
	ErrGone, // what kvqueue.ErrClosed of the server is to a client
}

func faultOf(err error) *fault {
	if err == nil {
		return nil
	}
	f := &fault{Kind: -1, Text: err.Error()}
	if errors.Is(err, kvqueue.ErrClosed) {
		err = fmt.Errorf("%w: %w", ErrGone, err)
		f.Text = err.Error()
	}
	for i, kind := range kinds {
		if errors.Is(err, kind) {
			f.Kind = i
			break
		}
	}
	_ = errors.As(err, &f.Invalid)
	return f
}

// error returns what the server has said; nil: there was no error.
func (f *fault) error() error {
	switch {
	case f == nil:
		return nil
	case f.Invalid != nil:
		return f.Invalid
	case f.Kind >= 0 && f.Kind < len(kinds):
		if f.Text == kinds[f.Kind].Error() {
			return kinds[f.Kind]
		}
		return &farError{f.Text, kinds[f.Kind]}
	}
	return errors.New(f.Text)
}

// A farError is an error of the process that has the file.
type farError struct {
	text string
	kind error
}

func (e *farError) Error() string { return e.text }
func (e *farError) Unwrap() error { return e.kind }
