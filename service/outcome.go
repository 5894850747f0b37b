package service

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
)

// This file says what is a failure of a service, and what Run returns.

// A failure is what has gone wrong, and its place among all that happened.
type failure struct {
	err   error
	order int
}

// verdict returns the failure that e is, nil if it is none.
func (e end) verdict() error {
	now := e.m.now()
	if _, ok := e.err.(*async.PanicError); ok {
		return e.err // it has a name, and is raised as it is
	}
	switch e.what {
	case earlyEnd:
		return e.m.named("", e.err)
	case endOfDrain:
		if e.err != nil && !e.m.onlyStops(e.err, true) {
			return e.m.named("drain: ", e.err)
		}
		return nil
	}
	switch {
	case now.early != nil: // was told
		return nil
	case e.err != nil && !e.m.onlyStops(e.err, now.told):
		return e.m.named("", e.err)
	case e.err == nil && now.missed != nil:
		return e.m.named("", now.missed)
	case e.err == nil && !now.everReady && !e.m.doneWell(now) && !now.told && now.called:
		return fmt.Errorf("%s: it has ended before it was ready", e.m.label)
	}
	return nil
}

// named returns err with the name of the service before it. The cause of m is left
// out: it is told already.
func (m *member) named(what string, err error) error {
	if list, ok := err.(*async.ScopeError); ok && list.Dropped == 0 {
		final, ours := list.Cause.(*notRetried)
		switch {
		case ours && len(list.Errors) == 0:
			err = final.error
		case ours || m.ctx.Err() != nil && same(list.Cause, context.Cause(m.ctx)):
			err = joined(list.Errors)
		}
	}
	return &serviceError{m.label + ": " + what, err}
}

// A serviceError is a failure of a service, with its name. The text of a user's error is
// asked for only when somebody wants to read it.
type serviceError struct {
	of  string
	err error
}

func (e *serviceError) Error() string { return e.of + textOf(e.err) }

// Unwrap returns what the service has returned.
func (e *serviceError) Unwrap() error { return e.err }

// onlyStops reports whether err says no more than that m was told to stop: that
// its ctx is cancelled, that of Run is done, or level 2 has come. If it was told before it returned, the
// ways in which servers and processes say that they were stopped count, too. The
// same errors from elsewhere are failures.
func (m *member) onlyStops(err error, told bool) bool {
	return isStop(err, m.stops(), told, 0)
}

// stops returns a context of no scope for each that tells m to stop and is done.
func (m *member) stops() (stops []context.Context) {
	for _, ctx := range []context.Context{m.ctx, m.set.outer, m.set.scope} {
		if ctx.Err() != nil {
			stops = append(stops, stoppedAs(ctx))
		}
	}
	return stops
}

func isStop(err error, stops []context.Context, told bool, depth int) (is bool) {
	if depth > 100 || told && stoppedByOrder(err) ||
		slices.ContainsFunc(stops, func(ctx context.Context) bool { return echoes(ctx, err) }) {
		return depth <= 100
	}
	defer func() { _ = recover() }() // of a user's Unwrap; is stays false
	switch e := err.(type) {
	case *async.TimeoutError, *async.PanicError, *async.StragglerError: // these say more than what they wrap
		return false
	case interface{ Unwrap() []error }:
		all := e.Unwrap()
		return len(all) > 0 && !slices.ContainsFunc(all, func(err error) bool { return !isStop(err, stops, told, depth+1) })
	case interface{ Unwrap() error }:
		return isStop(e.Unwrap(), stops, told, depth+1)
	}
	return false
}

// stoppedByOrder reports whether err is what a server or a process ends with that
// is told to stop.
func stoppedByOrder(err error) bool {
	if exit, ok := err.(*exec.ExitError); ok && exit != nil && exit.ProcessState != nil {
		switch exit.ExitCode() {
		case -1, 128 + 2, 128 + 9, 128 + 15: // by a signal; and as shells and others say INT, KILL, TERM
			return true
		}
	}
	return err == http.ErrServerClosed // the caller unwraps
}

// stoppedAs returns a ctx of no scope that is done for the same reason as ctx.
func stoppedAs(ctx context.Context) context.Context {
	if ctx.Err() == context.DeadlineExceeded {
		done, cancel := context.WithDeadlineCause(context.Background(), time.Unix(0, 0), context.Cause(ctx))
		cancel()
		return done
	}
	done, cancel := context.WithCancelCause(context.Background())
	cancel(context.Cause(ctx))
	return done
}

// echoes reports whether err says no more than that stopped is done. Package async
// judges that of every task: a scope that is cancelled does not list such an error.
func echoes(stopped context.Context, err error) bool {
	outcome := async.Scope(stopped, func(ctx context.Context) error {
		async.Go(ctx, func(context.Context) error { return err })
		return nil
	})
	list, ok := outcome.(*async.ScopeError)
	return ok && list.Cause != nil && len(list.Errors) == 0 && list.Dropped == 0
}

// A cutShort is the cause of level 2, and that with which a service is cancelled whose
// Drain has failed.
type cutShort struct {
	why   error  // of level 1; nil: a service has ended without a failure
	by    error  // of level 2, or the failure of the Drain
	plain bool   // why is told beside it
	left  string // who had not ended by then
}

// Error tells what has cut the drain short, and what that was for.
func (e *cutShort) Error() string {
	text := "service: the drain was cut short: " + textOf(e.by)
	if e.why != nil && !e.plain {
		text += "; it was for: " + textOf(e.why)
	}
	return text + e.left
}

// Unwrap returns both causes.
func (e *cutShort) Unwrap() []error {
	if e.why == nil {
		return []error{e.by}
	}
	return []error{e.why, e.by}
}

// causeOfCut returns why level 2 begins now.
func (s *set) causeOfCut() error {
	e := &cutShort{why: s.why, plain: s.failed, left: s.overruns()}
	switch {
	case s.scope.Err() != nil:
		e.by = context.Cause(s.scope)
	case closed(s.hurry):
		e.by = context.Cause(s.program.hurry)
	case s.cutAbove():
		e.by = context.Cause(s.parent.set.scope)
		if above, ok := e.by.(*cutShort); ok && !s.failed {
			return above // the Run above knows it again
		} else if ok {
			e.by = above.by
		}
	default:
		e.by = &async.TimeoutError{Task: "services", Limit: s.grace, Waited: s.grace}
	}
	return e
}

// outcome returns what Run returns, or raises the first panic. last is what its
// scope has returned.
func (s *set) outcome(last error) error {
	slices.SortStableFunc(s.failures, func(a, b failure) int { return cmp.Compare(a.order, b.order) })
	var errs []error
	for _, f := range s.failures {
		errs = append(errs, f.err)
	}
	if s.cut != nil {
		first := 0
		if s.failed {
			first = 1
		}
		errs = slices.Insert(errs, first, s.cut)
	}
	errs = append(errs, s.besides(last)...)
	if i := slices.IndexFunc(errs, func(err error) bool { _, ok := err.(*async.PanicError); return ok }); i >= 0 {
		p := errs[i].(*async.PanicError)
		if s.cut != nil && s.failed { // it would lead to p
			cut := s.cut.(*cutShort)
			errs[slices.Index(errs, s.cut)] = &cutShort{by: cut.by, left: cut.left}
		}
		raise(p, slices.Delete(errs, i, i+1))
	}
	return joined(errs)
}

// besides returns what the scope of Run has to say beyond that it was cancelled:
// who is left.
func (s *set) besides(last error) (errs []error) {
	list, ok := last.(*async.ScopeError)
	switch {
	case ok && s.cut != nil && list.Cause != nil:
		errs = list.Errors
	case last != nil:
		errs = []error{last}
	}
	errs = slices.DeleteFunc(slices.Clone(errs), func(err error) bool {
		left, ok := err.(*async.StragglerError)
		return ok && len(left.Left)+left.More == 0 // they have gone meanwhile
	})
	for i, err := range errs {
		var cut *cutShort
		if left, ok := err.(*async.StragglerError); ok && as(left.Cause, &cut) && error(cut) == s.cut {
			brief := *left
			brief.Cause = &toldBefore{left.Cause}
			errs[i] = &brief
		}
	}
	return errs
}

// A toldBefore is the cause of level 2 in an error that stands behind the cause.
type toldBefore struct{ cut error }

// Error says in short what the error before has said.
func (*toldBefore) Error() string { return "the drain was cut short" }

// Unwrap returns the cause.
func (e *toldBefore) Unwrap() error { return e.cut }

// raise panics with p, as a scope does in which errs went wrong, too.
func raise(p *async.PanicError, errs []error) {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		for _, err := range slices.Backward(errs) {
			async.OnExit(ctx, func(context.Context, error) error { return err })
		}
		async.Go(ctx, func(context.Context) error { panic(p) })
		return nil
	})
}

// same reports whether two errors are the same value, also if they cannot be compared.
func same(a, b error) (is bool) {
	defer func() { _ = recover() }()
	return a == b
}

// joined makes one error of several.
func joined(errs []error) error {
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return &runError{errs}
}

// A runError is more than one thing that has gone wrong.
type runError struct{ errs []error }

// Error tells them one a line, those after the first indented.
func (e *runError) Error() string {
	var texts []string
	for _, err := range e.errs {
		texts = append(texts, strings.ReplaceAll(strings.TrimRight(textOf(err), "\n"), "\n", "\n\t"))
	}
	return strings.Join(texts, "\n\t")
}

// Unwrap returns them.
func (e *runError) Unwrap() []error { return e.errs }
