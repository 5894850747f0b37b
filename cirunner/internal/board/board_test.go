package board

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/cirunner/internal/plan"
)

func TestClean(t *testing.T) {
	for raw, want := range map[string]string{
		"plain":                                    "plain",
		"\x1b[31mred\x1b[0m and \x1b[1mbold":       "red and bold",
		"\x1b]0;title\x07text":                     "text",
		"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\": "link",
		"10%\r50%\r100%\r":                         "100%",
		"windows\r\n":                              "windows",
		"a\tb":                                     "a    b",
		"up\x1b[5Aand\x1b[2Jover":                  "upandover",
		"bell\a back\b null\x00":                   "bell back null",
		"bad \xff\xfe utf8":                        "bad ? utf8",
		"äöü 日本 ✔":                                 "äöü 日本 ✔",
		"\x1b[":                                    "",
		"turn \u202e round":                        "turn  round",
	} {
		assert.Equal(t, want, Clean([]byte(raw)), "%q", raw)
	}
}

func FuzzClean(f *testing.F) {
	f.Add([]byte("\x1b[31m\x9b5A\u0085x"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, c := range Clean(raw) {
			if !unicode.IsPrint(c) {
				t.Fatalf("%q is left in %q", c, Clean(raw))
			}
		}
	})
}

type record struct{ states []plan.State }

func (r *record) Changed(j Job)                 { r.states = append(r.states, j.State) }
func (r *record) Line(job, source, line string) {}
func (r *record) Notice(string)                 {}

func TestTheBoardShowsWhatWasLast(t *testing.T) {
	var r record
	b := New([]Job{{Name: "a"}, {Name: "b"}}, &r)
	b.Change(1, func(j *Job) { j.State = plan.Running })
	b.Line(1, Line{}, []byte("\x1b[1mhello"))
	b.Line(1, Line{Source: "db"}, []byte("of a service"))
	jobs := b.Jobs()
	assert.Equal(t, "hello", jobs[1].Last)
	jobs[0].Name = "mine"
	assert.Equal(t, "a", b.Jobs()[0].Name)
	assert.Equal(t, []plan.State{plan.Running}, r.states)
}

// The end of a script is kept although it is not shown; what it was about is not
// pushed out by after_script, nor by the runner's own words.
func TestTheTailIsThatOfTheScript(t *testing.T) {
	b := New([]Job{{Name: "a"}}, nil)
	phase := func(attempt int, name string) {
		b.Change(0, func(j *Job) { j.Attempt, j.Phase = attempt, name })
	}
	phase(1, "script")
	b.Line(0, Line{}, []byte("of the first attempt"))
	phase(2, "preparing")
	b.Line(0, Line{}, []byte("before"))
	phase(2, "script")
	last, of := b.Tail(0)
	assert.Empty(t, last)
	assert.Zero(t, of)
	var want []string
	for i := range 25 {
		line := fmt.Sprint("line ", i)
		b.Line(0, Line{Hidden: i%2 == 1}, []byte("\x1b[31m"+line))
		if i >= 15 {
			want = append(want, line)
		}
	}
	b.Line(0, Line{Own: true}, []byte("cirunner: exit status 1"))
	b.Line(0, Line{Source: "db"}, []byte("of a service"))
	phase(2, "after_script")
	b.Line(0, Line{}, []byte("tidy"))
	last, of = b.Tail(0)
	assert.Equal(t, want, last)
	assert.Equal(t, 25, of)

	phase(3, "script")
	b.Line(0, Line{}, bytes.Repeat([]byte("x"), 60_000))
	last, _ = b.Tail(0)
	assert.LessOrEqual(t, len(last[0]), 510, "a long line is cut: many jobs may have ten of them")
}

func TestAttemptsAndPhasesAreKept(t *testing.T) {
	b := New([]Job{{Name: "a"}}, nil)
	for attempt := 1; attempt <= 3; attempt++ {
		b.Change(0, func(j *Job) { j.Attempt, j.Phase, j.Why = attempt, "preparing", "" })
		b.Change(0, func(j *Job) { j.Phase = "script" })
		b.Change(0, func(j *Job) { j.Last = "no other phase" })
		b.Change(0, func(j *Job) { j.Phase = "" })
		b.Change(0, func(j *Job) { j.Why = fmt.Sprint("failed ", attempt) })
	}
	j := b.Jobs()[0]
	names := func(phases []Phase) (all []string) {
		for _, p := range phases {
			all = append(all, p.Name)
		}
		return all
	}
	assert.Len(t, j.Past, 2)
	assert.Equal(t, "failed 1", j.Past[0].Why)
	assert.Equal(t, "failed 2", j.Past[1].Why)
	for _, phases := range [][]Phase{j.Past[0].Phases, j.Past[1].Phases, j.Phases} {
		assert.Equal(t, []string{"preparing", "script"}, names(phases))
	}
}

// The time that a job waits for room counts, and the time that it waits for others does not.
func TestHowLongAJobHasWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New([]Job{{Name: "a"}}, nil)
		to := func(s plan.State, after time.Duration) {
			time.Sleep(after)
			b.Change(0, func(j *Job) { j.State = s })
		}
		to(plan.Delayed, time.Minute)
		to(plan.Ready, time.Hour)
		ready := time.Now()
		to(plan.Locked, 2*time.Second)
		to(plan.Ready, 3*time.Second)
		to(plan.Running, 4*time.Second)
		to(plan.Ready, time.Minute) // another attempt
		to(plan.Running, time.Second)
		to(plan.Succeeded, time.Minute)
		assert.Equal(t, 10*time.Second, b.Jobs()[0].Waited)
		assert.Equal(t, ready, b.Jobs()[0].Ready)
	})
}
