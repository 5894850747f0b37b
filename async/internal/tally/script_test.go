package tally_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ambit-go/ambit/async/internal/tally"
)

var update = flag.Bool("update", false, "write what the scripts come to into them")

// TestScripts runs testdata/*.txt. A script is one event a line; behind "----"
// stands what each event was answered and, last, how the scope has gone.
//
//	go E [class] [list=A,B] [dropped=N] [stopped]    a Go task has ended with E
//	go E [class] goes-on                             the same, but the scope goes on
//	future NAME E [class] [awaited] [told] ...       a future has failed
//	value NAME [awaited] [rooted] [late]             a value waits to be given
//	claim NAME                                       somebody is given it
//	own E [class]                                    the body or handler has failed
//	hook E                                           E is an error of a hook
//	echo [said=E]                                    as skip, in these words
//	skip                                       something repeats the stop, or was not done for it
//	stop CAUSE                                       the scope was cancelled
//	led                                              a leader of the scope has done that
//	body echo [owes] [said=E]                        the body only repeated it, in these words
//	end [named]                                      the unclaimed is the scope's, and told with the NAME
//	also NAME E                                      E is told with the NAME from here on
//	values                                           the values to be discarded
//	forget                                           what has gone wrong was told
//	last E                                           one more error, told last
//
// A class is failure, the default, echo, panic or goexit. An E that is used
// twice is the same error. "x40" behind an event repeats it with 40 different
// errors.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			events, want, _ := strings.Cut(string(text), "----\n")
			got := newScript().run(t, events)
			if *update {
				if err := os.WriteFile(file, []byte(events+"----\n"+got), 0o666); err != nil {
					t.Fatal(err)
				}
			} else if got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// A script is a scope that a script is played to.
type script struct {
	tally   tally.Tally
	errs    map[string]error
	entries map[string]*tally.Entry
	body    tally.HandlerEnd
	cause   error // why it was cancelled
	led     bool
	last    error
	out     strings.Builder
}

func newScript() *script {
	return &script{tally: tally.Tally{Bare: bare}, errs: make(map[string]error), entries: make(map[string]*tally.Entry)}
}

// whose is an error that says of another whose it is.
type whose struct {
	name string
	error
}

func (e whose) Error() string { return e.name + ": " + e.error.Error() }

func bare(err error) error {
	if e, ok := err.(whose); ok {
		return e.error
	}
	return err
}

func tellName(x *tally.Entry, err error) error { return whose{x.Outcome.(string), err} }

func (s *script) err(name string) error {
	if s.errs[name] == nil {
		s.errs[name] = errors.New(name)
	}
	return s.errs[name]
}

func (s *script) run(t *testing.T, events string) string {
	for _, line := range strings.Split(events, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		times := 1
		if n, ok := strings.CutPrefix(words[len(words)-1], "x"); ok {
			var err error
			if times, err = strconv.Atoi(n); err != nil {
				t.Fatal(err)
			}
			words = words[:len(words)-1]
		}
		answer := ""
		for i := range times {
			w := append([]string(nil), words...)
			if times > 1 {
				for j := 1; j < len(w) && j < 3; j++ {
					if !strings.Contains(classes, " "+w[j]+" ") {
						w[j] += strconv.Itoa(i)
					}
				}
			}
			answer = s.event(t, w)
		}
		fmt.Fprintf(&s.out, "%s: %s\n", strings.Join(words, " "), answer)
	}
	s.sum()
	return s.out.String()
}

const classes = " failure echo panic goexit awaited told stopped rooted abandoned late "

// fact reads the words behind the name of an error.
func (s *script) fact(name string, words []string) (f tally.Fact, has map[string]bool) {
	f.Err, has = s.err(name), make(map[string]bool)
	for _, w := range words {
		switch key, value, _ := strings.Cut(w, "="); key {
		case "echo":
			f.Class = tally.Echo
		case "panic":
			f.Class = tally.Panic
		case "goexit":
			f.Class = tally.Goexit
		case "list":
			f.Errs = []error{}
			for _, name := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' }) {
				f.Errs = append(f.Errs, s.err(name))
			}
		case "dropped":
			f.Dropped, _ = strconv.Atoi(value)
		default:
			has[key] = true
		}
	}
	return f, has
}

// said returns what the last of the words says beside a cancellation.
func (s *script) said(w []string) []error {
	if name, said := strings.CutPrefix(w[len(w)-1], "said="); said {
		return []error{s.err(name)}
	}
	return nil
}

// entry returns a new entry that is found by its name.
func (s *script) entry(name string) *tally.Entry {
	s.entries[name] = &tally.Entry{Outcome: name}
	return s.entries[name]
}

func future(has map[string]bool) tally.Future {
	return tally.Future{Awaited: has["awaited"], Told: has["told"], Rooted: has["rooted"], Abandoned: has["abandoned"], Late: has["late"]}
}

func (s *script) event(t *testing.T, w []string) string {
	decisions := [...]string{"ignored", "recorded", "fails the scope", "given", "open", "at the root", "late"}
	switch w[0] {
	case "go":
		f, has := s.fact(w[1], w[2:])
		f.Quiet, f.GoesOn, f.Texts = has["stopped"], has["goes-on"], s.said(w)
		return decisions[s.tally.Record(&f)]
	case "own":
		f, _ := s.fact(w[1], w[2:])
		s.tally.Record(&f)
	case "future":
		f, has := s.fact(w[2], w[3:])
		f.Quiet, f.Texts = has["stopped"], s.said(w)
		return decisions[s.tally.Future(&f, future(has), s.entry(w[1]))]
	case "value":
		_, has := s.fact("", w[2:])
		return decisions[s.tally.Value(future(has), s.entry(w[1]))]
	case "claim":
		return fmt.Sprint(s.tally.Claim(s.entries[w[1]]))
	case "hook":
		s.tally.Record(&tally.Fact{Class: tally.Hook, Err: s.err(w[1])})
	case "echo", "skip":
		s.tally.Record(&tally.Fact{Class: tally.Echo, Texts: s.said(w)})
	case "stop":
		s.cause = s.err(w[1])
	case "led":
		s.led = true
	case "body":
		_, has := s.fact("", w[2:])
		s.body = tally.HandlerEnd{Echo: true, Owes: has["owes"]}
		for _, text := range s.said(w) {
			s.body.Said = text
		}
	case "end":
		if len(w) > 1 {
			s.tally.TakeFailures(tellName)
		} else {
			s.tally.TakeFailures(nil)
		}
	case "also":
		s.errs[w[2]] = whose{w[1], s.err(w[2])}
	case "forget":
		s.tally.Forget()
	case "last":
		s.last = s.err(w[1])
	case "values":
		var names []string
		for x := s.tally.TakeValue(); x != nil; x = s.tally.TakeValue() {
			names = append(names, x.Outcome.(string))
		}
		return strings.Join(names, ",")
	default:
		t.Fatalf("unknown event %q", w)
	}
	return "noted"
}

// sum writes how the scope has gone.
func (s *script) sum() {
	sum := s.tally.Sum(tally.End{Handler: s.body, Cause: s.cause, Led: s.led, Last: s.last})
	fmt.Fprintf(&s.out, "cause: %v\n", sum.Cause)
	for i, err := range sum.Errs {
		if i < 4 || i == len(sum.Errs)-1 {
			fmt.Fprintf(&s.out, "%2d: %v\n", i, err)
		} else if i == 4 {
			fmt.Fprintln(&s.out, " ...")
		}
	}
	for label, value := range map[string]any{"dropped": sum.Dropped} {
		fmt.Fprintf(&s.out, "%s: %v\n", label, value)
	}
	if sum.HasTexts() {
		fmt.Fprintf(&s.out, "said: %v %v, %d more\n", sum.Said, sum.Texts, sum.TextsDropped)
	}
	fmt.Fprintf(&s.out, "panic: %v, goexit: %v, well: %v, echo: %v\n", sum.Panic, sum.Goexit, sum.Well(), sum.Echo())
}
