package scheduler

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A lifecycleWorld is a lifecycle and what really is: the tasks that are queued, whether the
// worker is in the line, and whether a goroutine is at it.
type lifecycleWorld struct {
	l            lifecycle
	queued       int
	inLine, here bool
	ends         int
}

// do lets one thing happen, and tells what follows.
func (x *lifecycleWorld) do(what string) (said string) {
	settle := func() {
		if idle, ended := x.l.settle(x.queued); ended {
			x.ends++
			said = "ended"
		} else if idle && said == "" {
			said = "idle"
		}
	}
	switch what {
	case "queue":
		if x.l.refusing {
			return "refused"
		}
		x.queued++
		if x.l.wake(x.queued) {
			x.inLine, said = true, "wake"
		}
	case "arrive":
		if x.inLine {
			x.inLine, x.here = false, true
			x.l.arrive()
		}
	case "run":
		if x.here {
			x.queued = max(x.queued-1, 0)
		}
	case "depart":
		if !x.here {
			return ""
		}
		x.here = false
		if x.inLine = x.l.depart(x.queued); x.inLine {
			return "more"
		}
		settle()
	case "drop":
		x.queued = 0
		settle()
	case "refuse":
		x.l.refusing = true
		settle()
	case "end":
		if x.l.refuseIfIdle(x.queued, x.queued) {
			settle()
		}
	case "reject": // the pool would not have the worker
		if x.inLine {
			x.inLine, x.queued = false, 0
			x.l.depart(0)
			settle()
		}
	case "undone":
		if x.l.leaveUndone(errors.New(fmt.Sprint(x.ends)), false) {
			said = "told"
		}
	}
	return said
}

func (x *lifecycleWorld) check() error {
	switch {
	case x.queued > 0 && !x.inLine && !x.here:
		return errors.New("tasks are queued, and nobody comes")
	case (x.inLine || x.here) && !x.l.active, x.here != x.l.hasGoroutine:
		return errors.New("a goroutine is not known")
	case x.ends > 1, x.l.closed != (x.ends == 1):
		return errors.New("it has ended more than once, or not known")
	case x.ends == 1 && x.queued > 0: // a goroutine that took it from the line may come yet
		return errors.New("it has ended with something to do")
	case x.l.refusing && x.queued == 0 && !x.here && x.ends == 0:
		return errors.New("it has nothing to do, and has not ended")
	}
	return nil
}

func TestWhereAWorkerStands(t *testing.T) {
	for name, script := range map[string]string{
		"one submission for a burst":            "queue:wake queue: queue: arrive: run: run: run: depart:idle",
		"what comes while it is drained":        "queue:wake arrive: run: queue: depart:more arrive: run: depart:idle queue:wake",
		"cancelled before a goroutine comes":    "queue:wake drop:idle queue: arrive: run: depart:idle",
		"refused by the pool, and works again":  "queue:wake reject:idle queue:wake arrive: run: depart:idle",
		"closed while idle":                     "refuse:ended refuse:idle queue:refused",
		"closed in the line":                    "queue:wake drop:idle refuse:ended",
		"closed while a task runs":              "queue:wake arrive: run: refuse: depart:ended",
		"drained":                               "queue:wake queue: refuse: arrive: run: depart:more arrive: run: depart:ended",
		"drained, and rejected":                 "queue:wake refuse: undone:told undone: reject:ended",
		"at the end of its scope, idle":         "end:ended end: queue:refused",
		"at the end of its scope, with a task":  "queue:wake end: arrive: run: end: depart:idle end:ended",
		"a goroutine that comes to nothing":     "queue:wake drop:idle arrive: depart:idle",
		"its goroutine dies, and the rest goes": "queue:wake queue: arrive: run: depart:more reject:idle",
	} {
		t.Run(name, func(t *testing.T) {
			var x lifecycleWorld
			for i, step := range strings.Fields(script) {
				what, want, _ := strings.Cut(step, ":")
				require.Equal(t, want, x.do(what), "step %d: %s", i+1, what)
				require.NoError(t, x.check())
			}
		})
	}
}

// Whatever happens in whatever order, what is queued is not forgotten, and a worker ends once.
func FuzzWhereAWorkerStands(f *testing.F) {
	steps := []string{"queue", "queue", "arrive", "run", "depart", "drop", "refuse", "end", "reject", "undone"}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		script := make([]byte, 30)
		for i := range script {
			script[i] = byte(rng.IntN(len(steps)))
		}
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		var x lifecycleWorld
		for i, b := range script {
			x.do(steps[int(b)%len(steps)])
			require.NoError(t, x.check(), "step %d of %v", i, script)
		}
	})
}

// A call that waits for room has its turn, first come, first served, and one answer.
func TestWhoWaitsForRoomHasItsTurn(t *testing.T) {
	c := capacity{most: 2}
	require.False(t, c.isFull(1))
	require.True(t, c.isFull(2))
	nodes := []*node{{}, {}, {future: new(ticket)}, {}}
	var calls []*blockedCall
	for _, n := range nodes {
		calls = append(calls, c.wait(n))
	}
	require.True(t, c.isFull(0), "nobody overtakes those who wait")
	require.Nil(t, c.next(2), "there is no room")
	require.Same(t, calls[0], c.next(1))
	c.withdraw(nodes[1], ErrCancelled)
	c.withdraw(nodes[0], ErrCancelled)
	require.Equal(t, ErrCancelled, <-calls[1].answer)
	cause := errors.New("why")
	c.refuse(cause)
	require.Equal(t, cause, <-calls[2].answer, "a future is told why")
	require.Equal(t, ErrClosed, <-calls[3].answer)
	require.Empty(t, calls[0].answer)
	require.False(t, c.isFull(1))
}
