package echo_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/ambit-go/ambit/async/internal/echo"
)

type uncomparable struct{ list []int }

func (uncomparable) Error() string { return "uncomparable" }

type panics struct{}

func (panics) Error() string { return "panics" }
func (panics) Unwrap() error { panic("in Unwrap") }

// netError looks like one of package net, but is not.
type netError struct{}

func (netError) Error() string   { return "operation was canceled" }
func (netError) Is(e error) bool { return e == context.Canceled }

func TestAnEchoSaysOnlyThatItsTaskWasStopped(t *testing.T) {
	cause := errors.New("cause")
	stop := echo.Stop{Err: context.Canceled, Cause: cause}
	known := errors.New("known")
	list := []int{1}
	_, dial := (&net.Dialer{}).DialContext(cancelled(), "tcp", "127.0.0.1:1")
	for name, test := range map[string]struct {
		err  error
		stop echo.Stop
		want bool
	}{
		"the error":              {context.Canceled, stop, true},
		"the cause":              {cause, stop, true},
		"wrapped":                {fmt.Errorf("reading: %w", cause), stop, true},
		"wrapped thrice":         {fmt.Errorf("a: %w", fmt.Errorf("b: %w", fmt.Errorf("c: %w", context.Canceled))), stop, true},
		"joined":                 {errors.Join(cause, context.Canceled), stop, true},
		"joined with a failure":  {errors.Join(cause, io.EOF), stop, false},
		"nothing joined":         {noErrors{}, stop, false},
		"a failure":              {io.EOF, stop, false},
		"another end":            {context.DeadlineExceeded, stop, false},
		"a dial of package net":  {dial, stop, true},
		"only looks like net's":  {netError{}, stop, false},
		"known to be one":        {known, stop, true},
		"wraps a known one":      {fmt.Errorf("x: %w", known), stop, true},
		"Unwrap panics":          {panics{}, stop, false},
		"wraps itself":           {wrapsItself{}, stop, false},
		"wraps nothing":          {wrapsNil{}, stop, false},
		"uncomparable, the same": {uncomparable{list}, echo.Stop{Err: context.Canceled, Cause: uncomparable{list}}, true},
		"uncomparable, another":  {uncomparable{[]int{1}}, echo.Stop{Err: context.Canceled, Cause: uncomparable{list}}, false},
	} {
		got := echo.Is(test.err, test.stop, func(err error) (bool, bool) { return err == known, err == known })
		if got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

type noErrors struct{}

func (noErrors) Error() string   { return "nothing" }
func (noErrors) Unwrap() []error { return nil }

type wrapsItself struct{}

func (wrapsItself) Error() string   { return "again" }
func (e wrapsItself) Unwrap() error { return e }

type joinsItself struct{}

func (joinsItself) Error() string     { return "again and again" }
func (e joinsItself) Unwrap() []error { return []error{e, e} }

type wrapsNil struct{}

func (wrapsNil) Error() string { return "nothing" }
func (wrapsNil) Unwrap() error { return nil }

func TestMatchesIsErrorsIsThatDoesNotPanic(t *testing.T) {
	if !echo.Matches(fmt.Errorf("x: %w", io.EOF), io.EOF) || echo.Matches(io.EOF, io.ErrClosedPipe) {
		t.Error("not as errors.Is")
	}
	for _, endless := range []error{wrapsItself{}, errors.Join(joinsItself{}, wrapsItself{})} {
		if echo.Matches(endless, io.EOF) {
			t.Error("a match in an error that wraps itself")
		}
		if _, ok := echo.As[*net.OpError](endless); ok {
			t.Error("found in an error that wraps itself")
		}
	}
	if _, ok := echo.As[*net.OpError](fmt.Errorf("x: %w", errors.Join(io.EOF, &net.OpError{}))); !ok {
		t.Error("not as errors.As")
	}
	if echo.Matches(panics{}, io.EOF) {
		t.Error("a match, after a panic")
	}
	type holder struct {
		error
		fields any
	}
	if echo.Matches(holder{io.EOF, []int{}}, holder{io.EOF, []int{}}) {
		t.Error("values that cannot be compared are the same")
	}
}
