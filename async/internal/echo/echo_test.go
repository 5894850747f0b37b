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

// saying is an error that says of itself what it says, as those of package async do.
type saying echo.Saying

func (saying) Error() string { return "ours" }

func ours(err error) (echo.Saying, bool) {
	s, is := err.(saying)
	return echo.Saying(s), is
}

func TestAnEchoMaySayMoreThanTheStop(t *testing.T) {
	cause := fmt.Errorf("on purpose: %w", io.EOF)
	stop := echo.Stop{Err: context.Canceled, Cause: cause}
	list := []int{1}
	for name, test := range map[string]struct {
		err  error
		stop echo.Stop
		want bool
	}{
		"the error":                {context.Canceled, stop, true},
		"the cause":                {cause, stop, true},
		"what the cause wraps":     {io.EOF, stop, true},
		"in words":                 {fmt.Errorf("page 7: %w", cause), stop, false},
		"a failure":                {io.ErrClosedPipe, stop, false},
		"ours, of the cause":       {saying{Cause: cause}, stop, true},
		"ours, of another cause":   {saying{Cause: io.ErrClosedPipe}, stop, false},
		"ours, lists bare ones":    {saying{Cause: cause, Errs: []error{cause}}, stop, true},
		"ours, lists a text":       {saying{Cause: cause, Errs: []error{fmt.Errorf("page 7: %w", cause)}}, stop, false},
		"ours, remembers an error": {saying{Errs: []error{cause}, Rest: []error{io.ErrClosedPipe}}, stop, false},
		"ours, remembers nothing":  {saying{Errs: []error{cause}, Rest: []error{nil}}, stop, true},
		"ours, says more":          {saying{Cause: cause, More: true}, stop, false},
		"ours, without a cause":    {saying{Errs: []error{cause}}, stop, true},
		"ours, and is the cause":   {saying{More: true}, echo.Stop{Err: context.Canceled, Cause: saying{More: true}}, true},
		"uncomparable, the cause":  {uncomparable{list}, echo.Stop{Err: context.Canceled, Cause: uncomparable{list}}, true},
	} {
		if got := echo.Bare(test.err, test.stop, ours); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAnEchoSaysOnlyThatItsTaskWasStopped(t *testing.T) {
	cause := errors.New("cause")
	stop := echo.Stop{Err: context.Canceled, Cause: cause}
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
		"ours, of the cause":     {saying{Cause: cause}, stop, true},
		"wraps ours":             {fmt.Errorf("x: %w", saying{Cause: cause}), stop, true},
		"ours, of another cause": {saying{Cause: io.EOF}, stop, false},
		"ours, lists echoes":     {saying{Errs: []error{saying{Cause: cause}, context.Canceled}}, stop, true},
		"ours, and an echo":      {saying{Cause: cause, Errs: []error{cause}}, stop, true},
		"ours, and a failure":    {saying{Cause: cause, Errs: []error{cause, io.EOF}}, stop, false},
		"ours, says more":        {saying{Cause: cause, More: true}, stop, false},
		"ours, says nothing":     {saying{}, stop, false},
		"ours, without an error": {saying{Errs: []error{nil}}, stop, false},
		"Unwrap panics":          {panics{}, stop, false},
		"wraps itself":           {wrapsItself{}, stop, false},
		"wraps nothing":          {wrapsNil{}, stop, false},
		"uncomparable, the same": {uncomparable{list}, echo.Stop{Err: context.Canceled, Cause: uncomparable{list}}, true},
		"uncomparable, another":  {uncomparable{[]int{1}}, echo.Stop{Err: context.Canceled, Cause: uncomparable{list}}, false},
	} {
		got := echo.Is(test.err, test.stop, ours)
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
