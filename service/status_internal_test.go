package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

type withStatus int

func (s withStatus) Error() string   { return fmt.Sprint("status ", int(s)) }
func (s withStatus) ExitStatus() int { return int(s) }

type statusPanics struct{}

func (statusPanics) Error() string   { return "panics" }
func (statusPanics) ExitStatus() int { panic("in ExitStatus") }

type wrapsItself struct{}

func (wrapsItself) Error() string   { return "again" }
func (e wrapsItself) Unwrap() error { return e }

type wrapsItselfTwice struct{}

func (wrapsItselfTwice) Error() string     { return "again" }
func (e wrapsItselfTwice) Unwrap() []error { return []error{e, e} }

func TestStatus(t *testing.T) {
	plain := errors.New("plain")
	interrupt, term := &SignalError{os.Interrupt}, &SignalError{syscall.SIGTERM}
	limit := &async.TimeoutError{Task: "services"}
	for name, test := range map[string]struct {
		err     error
		signals []*SignalError
		want    int
	}{
		"nothing":                               {nil, nil, 0},
		"nothing, after a signal":               {nil, []*SignalError{term}, 0},
		"nothing, after two":                    {nil, []*SignalError{term, term}, 0},
		"an error":                              {plain, nil, 1},
		"its own":                               {fmt.Errorf("x: %w", withStatus(7)), nil, 7},
		"its own, 0":                            {withStatus(0), nil, 0},
		"its own, in a list":                    {errors.Join(plain, withStatus(7), withStatus(8)), nil, 7},
		"its own, in a list of ours":            {joined([]error{plain, withStatus(7)}), nil, 7},
		"its own, out of range":                 {withStatus(256), nil, 1},
		"its own, negative":                     {withStatus(-1), nil, 1},
		"its own, which panics":                 {statusPanics{}, nil, 1},
		"given":                                 {WithStatus(plain, 7), nil, 7},
		"given, around another":                 {WithStatus(withStatus(8), 7), nil, 7},
		"given, in a list":                      {joined([]error{plain, WithStatus(plain, 7)}), nil, 7},
		"given 0":                               {WithStatus(plain, 0), nil, 1},
		"given, out of range":                   {WithStatus(plain, 256), nil, 1},
		"given, negative, around another":       {WithStatus(withStatus(8), -1), nil, 8},
		"given to nothing":                      {WithStatus(nil, 7), nil, 0},
		"given to a panic":                      {WithStatus(&async.PanicError{Value: "boom"}, 7), nil, 7},
		"an int":                                {interrupt, nil, 130},
		"a signal":                              {fmt.Errorf("x: %w", interrupt), []*SignalError{interrupt}, 130},
		"the cause of a scope":                  {&async.ScopeError{Cause: term, Errors: []error{plain}}, []*SignalError{term}, 143},
		"time was up":                           {&cutShort{why: term, by: limit}, []*SignalError{term}, 143},
		"time was up, and a drain has failed":   {joined([]error{&cutShort{why: term, by: limit}, withStatus(7)}), []*SignalError{term}, 143},
		"a drain has failed":                    {plain, []*SignalError{term}, 1},
		"a drain has failed, with its own":      {withStatus(7), []*SignalError{term, term}, 7},
		"the ctx":                               {context.Canceled, []*SignalError{interrupt}, 130},
		"the ctx, without a signal":             {context.Canceled, nil, 1},
		"hurried":                               {plain, []*SignalError{term, interrupt}, 143},
		"a failure, whose drain took too long":  {joined([]error{plain, &cutShort{why: plain, by: limit}}), nil, 1},
		"a panic":                               {fmt.Errorf("x: %w", &async.PanicError{Value: "boom"}), nil, 2},
		"a panic with a status":                 {&async.PanicError{Value: withStatus(7)}, nil, 2},
		"a panic, after a signal":               {&async.PanicError{Value: "boom"}, []*SignalError{term, term}, 2},
		"a tree without an end":                 {wrapsItself{}, nil, 1},
		"a tree without an end in two branches": {wrapsItselfTwice{}, nil, 1},
	} {
		assert.Equal(t, test.want, status(test.err, test.signals), name)
	}
}

type odd struct{}

func (odd) String() string { return "odd" }
func (odd) Signal()        {}

func TestSignalError(t *testing.T) {
	assert.EqualError(t, &SignalError{syscall.SIGTERM}, "stopped by signal: terminated")
	assert.Equal(t, 1, (&SignalError{odd{}}).ExitStatus(), "of another system")
}

// program runs run as Main does, with signals that have come before.
func runProgram(t *testing.T, run func(context.Context) error, opts []Option, signals ...os.Signal) int {
	t.Helper()
	statuses := make(chan int, 2)
	p := newProgram(opts)
	p.exit = func(code int) { statuses <- code }
	for _, sig := range signals {
		p.signals <- sig
	}
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		p.follow()
	}()
	if len(signals) > 0 {
		<-p.ctx.Done()
	}
	p.main(run)
	code := <-statuses
	for range 3 - len(signals) {
		p.signals <- os.Interrupt
	}
	<-followed
	return code
}

func TestASignalBeforeRunIsCalled(t *testing.T) {
	assert.Equal(t, 0, runProgram(t, func(ctx context.Context) error {
		var sig *SignalError
		require.ErrorAs(t, context.Cause(ctx), &sig)
		assert.Equal(t, syscall.SIGTERM, sig.Signal)
		return Run(ctx, []Service{{Run: func(context.Context) error { t.Error("it was run"); return nil }}})
	}, nil, syscall.SIGTERM))
}

func TestTheOptionsOfMainAreTheDefaultsOfRun(t *testing.T) {
	assert.Equal(t, 0, runProgram(t, func(ctx context.Context) error {
		s := newSet(ctx, nil, []Option{Delay(3)})
		assert.Equal(t, options{grace: 1, delay: 3, giveUp: 6 * time.Second}, s.options)
		s = newSet(context.WithoutCancel(ctx), nil, []Option{Grace(-1), GiveUp(-1), Delay(-1)})
		assert.Equal(t, options{}, s.options)
		return nil
	}, []Option{Grace(7), Grace(1), Delay(2)}))
	assert.Equal(t, options{grace: 20 * time.Second, giveUp: 6 * time.Second}, newSet(t.Context(), nil, nil).options)
}

func TestHurryIsAStandardContext(t *testing.T) {
	type key struct{}
	assert.Equal(t, 0, runProgram(t, func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(context.WithValue(ctx, key{}, "value"))
		cancel()
		hurry := Hurry(ctx)
		assert.NoError(t, hurry.Err())
		assert.Equal(t, "value", hurry.Value(key{}))
		assert.Same(t, programOf(ctx), programOf(hurry))
		child, cancel := context.WithTimeout(hurry, time.Hour)
		defer cancel()
		ran := false
		require.NoError(t, async.Scope(child, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				ran = true
				return ctx.Err()
			})
			return nil
		}))
		assert.True(t, ran, "what is started with it belongs to the scope of ctx and is not cancelled with it")
		programOf(ctx).hurryUp(&SignalError{os.Interrupt})
		require.ErrorIs(t, child.Err(), context.Canceled, "at once, without a goroutine between")
		require.ErrorAs(t, context.Cause(child), new(*SignalError))
		return nil
	}, nil))
	hurry := Hurry(context.WithValue(t.Context(), key{}, "value"))
	assert.Equal(t, "value", hurry.Value(key{}))
	assert.Nil(t, hurry.Done(), "without Main there is no second signal")
}

// A Run under context.WithoutCancel hears no first signal; the second cuts it short.
func TestHurryCutsWhatHasNotHeardOfTheFirst(t *testing.T) {
	code := runProgram(t, func(ctx context.Context) error {
		p := programOf(ctx)
		return Run(context.WithoutCancel(ctx), []Service{{Run: func(ctx context.Context) error {
			p.hurryUp(&SignalError{os.Interrupt})
			<-ctx.Done()
			return ctx.Err()
		}}})
	}, nil)
	assert.Equal(t, 130, code)
}

func TestWhatHasFailedIsNotedOnceAndFirst(t *testing.T) {
	p := newProgram(nil)
	first := errors.New("first")
	p.note(nil, nil)
	p.note(first, nil)
	p.note(errors.New("second"), nil)
	assert.Equal(t, first, p.noted[0].err)
}
