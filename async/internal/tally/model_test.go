package tally_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// A model is a tally that is too simple to be wrong: it keeps a log of what was
// told, and goes through all of it for every question.
type model struct {
	log     []entry
	decided error // the first failure for which the scope was cancelled
}

// entry is one line of the log.
type entry struct {
	kind    string // fact, hook, echo, skip, future, value
	class   tally.Class
	err     error
	name    string // it is told with
	future  int    // of future and value: which
	counted bool   // a future that found no place: only the number is kept
	closed  bool   // a future or value that was claimed or taken
	said    error  // beside a cancellation
	late    error  // the same, of a future that is open
}

func (m *model) loud(c tally.Class) bool { return c == tally.Panic || c == tally.Goexit }

func (m *model) child(c tally.Class, err error, quiet, goesOn bool, said error) tally.Decision {
	switch {
	case quiet && c == tally.Echo:
		m.log = append(m.log, entry{kind: "said", said: said})
		return tally.Ignored
	case quiet && !m.loud(c):
		return tally.Ignored
	case c == tally.Echo:
		m.log = append(m.log, entry{kind: "echo", said: said})
		return tally.Recorded
	}
	m.log = append(m.log, entry{kind: "fact", class: c, err: err, said: said})
	if goesOn {
		return tally.Recorded
	}
	if m.decided == nil {
		m.decided = err
	}
	return tally.Fails
}

func (m *model) newFuture(n int, c tally.Class, err error, of tally.Future, quiet bool, said error) tally.Decision {
	switch {
	case c == tally.Echo:
		kind := "echo"
		if quiet {
			kind = "said"
		}
		if of.Awaited || of.Told {
			said = nil
		}
		m.log = append(m.log, entry{kind: kind, said: said})
		return tally.Given
	case of.Awaited:
		return tally.Given
	case (of.Told || quiet) && !m.loud(c):
		return tally.Given
	case of.Rooted:
		return tally.AtRoot
	case of.Late:
		return tally.Late
	}
	open := 0
	for _, e := range m.log {
		if e.kind == "future" && !e.closed && !e.counted && e.class != tally.Panic {
			open++
		}
	}
	e := entry{kind: "future", class: c, err: err, future: n, counted: c != tally.Panic && open >= tally.Max}
	if e.late = said; e.counted {
		e.late = nil // with the error
	}
	m.log = append(m.log, e)
	return tally.Open
}

func (m *model) newValue(n int, of tally.Future) tally.Decision {
	switch {
	case of.Awaited:
		return tally.Given
	case of.Rooted:
		return tally.AtRoot
	case of.Late:
		return tally.Late
	}
	m.log = append(m.log, entry{kind: "value", future: n})
	return tally.Open
}

func (m *model) claim(n int) bool {
	for i, e := range m.log {
		if (e.kind == "future" || e.kind == "value") && e.future == n && !e.closed {
			m.log[i].closed = true
			return true
		}
	}
	return false
}

// end turns open futures into facts at the end of the log, and the counted ones
// into a number.
func (m *model) end() (dropped int) {
	for i, e := range m.log {
		if e.kind != "future" || e.closed {
			continue
		}
		if e.counted {
			dropped++ // it may be claimed yet, and then counts all the same
			m.log[i].closed = true
		} else {
			m.log[i].closed = true
			m.log = append(m.log, entry{kind: "fact", class: e.class, err: e.err, name: fmt.Sprint(e.future), said: e.late})
		}
	}
	return dropped
}

func (m *model) values() (which []int) {
	for i, e := range m.log {
		if e.kind == "value" && !e.closed {
			m.log[i].closed = true
			which = append(which, e.future)
		}
	}
	return which
}

// texts returns what was said beside cancellations, each once.
func (m *model) texts() (all []error, dropped int) {
	for _, e := range m.log {
		switch {
		case e.said == nil || slices.Contains(all, e.said):
		case len(all) < tally.Max:
			all = append(all, e.said)
		default:
			dropped++
		}
	}
	return append([]error{}, all...), dropped
}

// sum sums up how a scope has gone whose body has ended so.
func (m *model) sum(body tally.HandlerEnd, cause error, led bool, dropped int) string {
	var errs, hooks []error
	var raised error
	hurt, goexit := body.Echo || dropped > 0, false
	for _, e := range m.log {
		hurt = hurt || e.kind == "echo" || e.kind == "skip" || e.kind == "fact" || e.kind == "hook"
		goexit = goexit || e.kind == "fact" && e.class == tally.Goexit
		switch {
		case e.kind == "hook" && !slices.Contains(hooks, e.err):
			if len(hooks) < tally.Max {
				hooks = append(hooks, e.err)
			} else {
				dropped++
			}
		case e.kind != "fact":
		case e.class == tally.Panic && raised == nil:
			raised = e.err
			errs = slices.DeleteFunc(errs, func(err error) bool { return err == raised })
		case e.class == tally.Panic && e.err == raised, slices.Contains(errs, e.err):
		case len(errs) < tally.Max:
			errs = append(errs, e.err)
		default:
			dropped++
		}
	}
	if i := slices.Index(errs, cause); i > 0 {
		errs = slices.Insert(slices.Delete(errs, i, i+1), 0, cause)
	}
	told := "none"
	if cause != nil && !(led && !(body.Echo && body.Owes)) && hurt && cause != raised && !slices.Contains(errs, cause) {
		told = cause.Error()
	}
	hooks = slices.DeleteFunc(hooks, func(err error) bool { return err == raised || slices.Contains(errs, err) })
	for i, err := range errs {
		named := slices.IndexFunc(m.log, func(e entry) bool { return e.kind == "fact" && e.err == err })
		if name := m.log[named].name; name != "" && m.log[named].class != tally.Panic {
			errs[i] = whose{name, err}
		}
	}
	errs = append(errs, hooks...)
	if n := len(errs); n > tally.Max {
		errs = append(errs[:tally.Max-1], errs[n-1])
		dropped += n - tally.Max
	}
	only := told == "none" && raised == nil && len(errs) == 1 && dropped == 0
	texts, textsDropped := m.texts()
	return fmt.Sprint(told, errs, dropped, raised, goexit, only && body.Said == nil && len(texts) == 0, body.Said, texts, textsDropped)
}

func realSum(s tally.Sum) string {
	told := "none"
	if s.Cause != nil {
		told = s.Cause.Error()
	}
	only := s.Only()
	if only != nil && only != s.Errs[0] {
		return "the only error is another"
	}
	return fmt.Sprint(told, append([]error{}, s.Errs...), s.Dropped, s.Panic, s.Goexit, only != nil, s.Said, append([]error{}, s.Texts...), s.TextsDropped)
}

// play runs a program decoded from data on both, and returns how they differ.
func play(data []byte) string {
	next := func(n int) int {
		if len(data) == 0 {
			return 0
		}
		b := int(data[0])
		data = data[1:]
		return b % n
	}
	var errs []error
	for i := range 90 {
		errs = append(errs, errors.New(fmt.Sprint("e", i)))
	}
	real := tally.Tally{Bare: bare}
	var m model
	var entries []*tally.Entry
	var cause error
	led := false
	dropped := 0
	for len(data) > 0 {
		// A panic is an error of its own: nothing else is the same value.
		class, err := tally.Class(next(4)), errs[next(60)]
		if class == tally.Panic {
			err = errs[60+next(30)]
		}
		var a, b any
		switch next(10) {
		case 0, 1:
			f := tally.Fact{Class: class, Err: err, Quiet: next(4) == 0, GoesOn: next(4) == 0}
			said := saidBy(&f, errs, next)
			named := class != tally.Panic && next(3) == 0 // a scope in it has told of it with a name
			if named {
				f.Err = whose{"in", err}
			}
			before := len(m.log)
			a, b = real.Record(&f), m.child(class, err, f.Quiet, f.GoesOn, said)
			if last := len(m.log) - 1; named && last == before && class != tally.Echo {
				m.log[last].name = "in"
			}
		case 2, 3, 4:
			f := tally.Fact{Class: class, Err: err, Quiet: next(8) == 0}
			said := saidBy(&f, errs, next)
			of := tally.Future{Awaited: next(4) == 0, Told: next(4) == 0, Rooted: next(16) == 1, Late: next(16) == 1}
			entries = append(entries, &tally.Entry{Outcome: fmt.Sprint(len(entries))})
			a, b = real.Future(&f, of, entries[len(entries)-1]), m.newFuture(len(entries)-1, class, err, of, f.Quiet, said)
		case 5:
			of := tally.Future{Awaited: next(4) == 1, Rooted: next(8) == 1, Late: next(8) == 1}
			entries = append(entries, &tally.Entry{Outcome: fmt.Sprint(len(entries))})
			a, b = real.Value(of, entries[len(entries)-1]), m.newValue(len(entries)-1, of)
		case 6:
			if len(entries) > 0 {
				n := next(len(entries))
				a, b = real.Claim(entries[n]), m.claim(n)
			}
		case 7:
			real.Record(&tally.Fact{Class: tally.Hook, Err: err})
			m.log = append(m.log, entry{kind: "hook", err: err})
		case 8:
			if cause == nil {
				cause = err
			}
			led = led || next(3) == 0
			if next(2) == 0 {
				real.Record(&tally.Fact{Class: tally.Echo})
				m.log = append(m.log, entry{kind: "skip"})
			}
		case 9:
			var took []string
			for x := real.TakeValue(); x != nil; x = real.TakeValue() {
				took = append(took, x.Outcome.(string))
			}
			a, b = fmt.Sprint(took), fmt.Sprint(m.values())
		}
		if a != b {
			return fmt.Sprintf("answered %v, the model %v", a, b)
		}
	}
	lost := realSum(real.Lost(tellName).Sum(tally.End{}))
	real.TakeFailures(tellName)
	dropped += m.end()
	for _, body := range []tally.HandlerEnd{
		{Echo: true, Said: errors.New("said")}, {Echo: true, Owes: true}, {Echo: true}, {},
	} {
		sum := real.Sum(tally.End{Handler: body, Cause: cause, Led: led})
		if got, want := realSum(sum), m.sum(body, cause, led, dropped); got != want {
			return fmt.Sprintf("summed up with the body %v\n%s\nthe model\n%s", body, got, want)
		}
	}
	if own := m.decided != nil && m.decided == cause; own && !real.FromInside(cause) {
		return "what the scope was cancelled for is not its own"
	}
	if all := realSum(real.Sum(tally.End{})); lost != all {
		return fmt.Sprintf("lost\n%s\nsummed up\n%s", lost, all)
	}
	return ""
}

// saidBy has f say something beside a cancellation, now and then, and returns that.
func saidBy(f *tally.Fact, errs []error, next func(int) int) error {
	if next(3) != 0 {
		return nil
	}
	f.Texts = []error{errs[next(60)]}
	return f.Texts[0]
}

func TestATallyAgreesWithASimpleModel(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		data := make([]byte, rng.IntN(600))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		if wrong := play(data); wrong != "" {
			t.Fatalf("seed %d: %s", seed, wrong)
		}
	}
}

func FuzzTally(f *testing.F) {
	f.Add([]byte("a few events"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if wrong := play(data); wrong != "" {
			t.Fatal(wrong)
		}
	})
}
