//go:build explore

package async

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
)

// This file asks scopes of the programs about panics, and checks what comes of the
// answers.

// inquiry is what is known of the panics of a scope with OnPanic. The mu of the
// machine guards it.
type inquiry struct {
	panicked map[plantedPanic]bool // of its Go tasks, without those that are started again
	asked    map[plantedPanic]int
	beside   map[plantedPanic]bool // of one that counts: they are told with it, and nobody is asked
	raises   bool                  // an answer was that the panic is to be raised
	excused  []*PanicError         // those that are not
	carried  []*PanicError         // those of which the scope is not even to fail
}

func newInquiry() *inquiry {
	return &inquiry{panicked: map[plantedPanic]bool{}, asked: map[plantedPanic]int{}, beside: map[plantedPanic]bool{}}
}

// onPanic returns the option of a scope with q; what answers fail it with goes to own.
func (e env) onPanic(q *inquiry, own *owner, n int) ScopeOption {
	return OnPanic(func(p *PanicError) error {
		e.w.Point("asked")
		id, planted := p.Value.(plantedPanic)
		if !planted {
			e.w.Failf("a scope was asked about a panic that is none of the program: %v", p)
			return p
		}
		var answer error
		e.locked(func() {
			q.asked[id]++
			switch (n + int(id)) % 7 {
			case 0, 1:
				q.excused, q.carried = append(q.excused, p), append(q.carried, p)
			case 2:
				answer = plantedError(1000 + id)
				own.errs, q.excused = append(own.errs, failed{err: answer}), append(q.excused, p)
			case 3:
				answer = fmt.Errorf("%w: %w", plantedError(2000+id), p)
				own.errs, q.excused = append(own.errs, failed{err: plantedError(2000 + id)}), append(q.excused, p)
			default:
				answer, q.raises = p, true
			}
			if answer != nil {
				q.noteBeside(p)
			}
		})
		switch (n + int(id)) % 7 {
		case 5:
			panic(plantedPanic(3000 + id))
		case 6:
			runtime.Goexit()
		}
		return answer
	})
}

// noteBeside notes the panics that came beside p.
func (q *inquiry) noteBeside(p *PanicError) {
	for _, err := range p.Also {
		var other *PanicError
		if errors.As(err, &other) {
			if id, planted := other.Value.(plantedPanic); planted {
				q.beside[id] = true
			}
			q.noteBeside(other)
		}
	}
}

// noted returns f, a Go task of a scope with q, which may be nil; q hears of its panic.
func (e env) noted(q *inquiry, s deed, f func(context.Context) error) func(context.Context) error {
	if q == nil || s.opts&withRestart != 0 {
		return f
	}
	return func(ctx context.Context) error {
		defer func() {
			v := recover()
			if id, planted := v.(plantedPanic); planted {
				e.locked(func() { q.panicked[id] = true })
			}
			if v != nil {
				panic(v)
			}
		}()
		return f(ctx)
	}
}

// check looks at a scope with q that has ended, with cause as the cause of its ctx.
// raised is what it has panicked with, nil if it has returned.
func (q *inquiry) check(e env, raised any, cause error) {
	e.locked(func() {
		for id := range q.panicked {
			if q.asked[id] != 1 && !q.beside[id] {
				e.w.Failf("a scope was asked %d times about the panic %d of a task", q.asked[id], id)
			}
		}
		if q.raises && raised == nil {
			e.w.Failf("a panic was to be raised, and was not")
		}
		for _, p := range q.excused {
			if raised == any(p) {
				e.w.Failf("a panic was raised that was not to be: %v", p)
			}
		}
		for _, p := range q.carried {
			if saysOnly(cause, p) {
				e.w.Failf("a scope that was to carry on was cancelled: %v", p)
			}
		}
	})
}

// saysOnly reports whether err is p or only repeats it. What holds p, and says that
// something else went wrong too, as a time that had passed, may cancel a scope that is
// to carry on after p.
func saysOnly(err error, p *PanicError) bool {
	all := func(errs []error) bool {
		return len(errs) > 0 && !slices.ContainsFunc(errs, func(err error) bool { return !saysOnly(err, p) })
	}
	switch e := err.(type) {
	case nil:
		return false
	case *PanicError:
		return e == p
	case *ScopeError:
		return e.Dropped == 0 && (e.Cause == nil || saysOnly(e.Cause, p)) && (len(e.Errors) == 0 && e.Cause != nil || all(e.Errors))
	case interface{ Unwrap() []error }:
		return all(e.Unwrap())
	}
	return saysOnly(errors.Unwrap(err), p)
}
