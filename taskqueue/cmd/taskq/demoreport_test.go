package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/taskqueue"
)

// The faults of the auditor: each by itself, in a task that is right without it.
func TestTheAuditorFindsWhatIsWrong(t *testing.T) {
	due := time.Now()
	for name, c := range map[string]struct {
		change func(i *taskqueue.Info, runs []entry) []entry
		fault  string
	}{
		"nothing":            {func(_ *taskqueue.Info, runs []entry) []entry { return runs }, ""},
		"it is not done":     {func(i *taskqueue.Info, runs []entry) []entry { i.State = taskqueue.StateRetrying; return runs }, "is retrying"},
		"a failure too many": {func(i *taskqueue.Info, runs []entry) []entry { i.Failures = 2; return runs }, "failed 2 times"},
		"no failure":         {func(i *taskqueue.Info, runs []entry) []entry { i.Failures = 0; return runs }, "failed 0 times"},
		"no run":             {func(*taskqueue.Info, []entry) []entry { return nil }, "no run of it that ended well"},
		"it only failed":     {func(_ *taskqueue.Info, runs []entry) []entry { return runs[:1] }, "no run of it that ended well"},
		"twice for no reason": {func(_ *taskqueue.Info, runs []entry) []entry {
			return append(runs, entry{Token: 3, Due: due, Started: due})
		}, "ended well 2 times"},
		"a token again": {func(_ *taskqueue.Info, runs []entry) []entry { runs[1].Token = 1; return runs }, "token 1 came after 1"},
		"too early": {func(_ *taskqueue.Info, runs []entry) []entry {
			runs[1].Started = due.Add(-time.Millisecond)
			return runs
		}, "early"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			d := &demo{env: &env{url: "sqlite:x", stdout: &out}, fails: map[string]int{"a": 1}}
			i := taskqueue.Info{Task: taskqueue.Task{ID: "a"}, State: taskqueue.StateDone, Failures: 1, Token: 2}
			runs := []entry{{Token: 1, Due: due, Started: due, Failed: true}, {Token: 2, Due: due, Started: due}}
			r := &demoReport{d: d}
			r.runs = map[string][]entry{"a": c.change(&i, runs)}
			r.task(&i)
			if c.fault == "early" {
				assert.Equal(t, 1, r.early)
				return
			}
			found := strings.Join(r.faults, "\n")
			assert.Equal(t, c.fault == "", found == "", found)
			assert.Contains(t, found, c.fault)
			assert.Zero(t, r.early)
		})
	}
}

// Twice is no fault if a lease was lost in between: at least once.
func TestADoneTaskThatRanTwiceAfterALostLeaseIsNoFault(t *testing.T) {
	d := &demo{env: &env{url: "sqlite:x"}, fails: map[string]int{}, killed: map[string]bool{"a": true}}
	r := &demoReport{d: d, runs: map[string][]entry{"a": {{Token: 1}, {Token: 2}}}}
	r.task(&taskqueue.Info{Task: taskqueue.Task{ID: "a"}, State: taskqueue.StateDone, Crashes: 1})
	assert.Empty(t, r.faults)
	assert.Equal(t, []int{1, 1, 0}, []int{r.repeated, r.lost, r.others})
}

// The clock of a server elsewhere is not compared with ours.
func TestAnotherClockMakesNoRunEarly(t *testing.T) {
	due := time.Now().Add(time.Hour)
	d := &demo{env: &env{url: "redis://elsewhere"}, fails: map[string]int{}}
	r := &demoReport{d: d, runs: map[string][]entry{"a": {{Token: 1, Due: due, Started: time.Now()}}}}
	r.task(&taskqueue.Info{Task: taskqueue.Task{ID: "a"}, State: taskqueue.StateDone, Token: 1, StartedAt: due.Add(time.Millisecond)})
	assert.Empty(t, r.faults)
	assert.Zero(t, r.early)
}
