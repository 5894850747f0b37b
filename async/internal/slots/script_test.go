package slots

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The scripts in testdata are what the core promises, one event a line, with
// what it answers behind "=>":
//
//	limit NAME SIZE [OUTER]                a limiter; the answer is its real name
//	submit TASK LIMITER [OPTION...]        options: depth=N, priority=N, executor
//	withdraw, retire TASK
//	begin TASK WAIT
//	lend TASK WAIT
//	return, takeback WAIT
//	free                                   the answer is how many slots each limiter has free
//	state TASK...                          the answer is where they stand
//
// Answers: "starts a" and "tells w" in the order of the grants, after what the
// event itself says: "queued", "lent", "not lent", "withdrawn", "too late",
// "runs", "waits", "told", "taken". "nothing" is an empty answer.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			f, err := os.Open(name)
			require.NoError(t, err)
			defer f.Close()
			var s *script
			for lines, n := bufio.NewScanner(f), 1; lines.Scan(); n++ {
				line, _, _ := strings.Cut(lines.Text(), "#")
				if line = strings.TrimSpace(line); line == "" {
					if strings.TrimSpace(lines.Text()) == "" {
						s = nil // an empty line begins a new story
					}
					continue
				}
				if s == nil {
					s = newScript()
				}
				event, want, ok := strings.Cut(line, "=>")
				require.True(t, ok, "%s:%d: no =>", name, n)
				require.Equal(t, strings.TrimSpace(want), s.do(strings.Fields(event)), "%s:%d: %s", name, n, event)
				s.check(t)
			}
		})
	}
}

type (
	testTask    = Task[string, string]
	testWait    = Wait[string, string]
	testLimiter = Limiter[string, string]
)

// A script is one story: its limiters, tasks and waits by name.
type script struct {
	order    []string // limiters as they came
	limiters map[string]*testLimiter
	tasks    map[string]*testTask
	waits    map[string]*testWait
	lenders  map[string]*testTask // whose wait it is, or was last
}

func newScript() *script {
	return &script{limiters: map[string]*testLimiter{}, tasks: map[string]*testTask{}, waits: map[string]*testWait{}, lenders: map[string]*testTask{}}
}

// do does one event and returns the answer.
func (s *script) do(words []string) string {
	arg := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	task := func() *testTask { return s.tasks[arg(1)] }
	switch words[0] {
	case "limit":
		return s.limit(arg(1), arg(2), arg(3))
	case "submit":
		return s.submit(arg(1), arg(2), words[3:])
	case "withdraw":
		return s.answer(pick(task().Withdraw(), "withdrawn", "too late"))
	case "retire":
		task().Retire()
		return s.answer()
	case "cut":
		s.limiters[arg(1)].Cut()
		return s.answer()
	case "layer":
		s.order, s.limiters[arg(1)] = append(s.order, arg(1)), NewLayer(s.limiters[arg(2)])
		return arg(1)
	case "begin":
		s.lenders[arg(2)] = task()
		return s.answer(pick(task().Begin(s.wait(arg(2))), "runs", "waits"))
	case "lend":
		s.lenders[arg(2)] = task()
		return s.answer(pick(task().Lend(s.wait(arg(2))), "lent", "not lent"))
	case "return":
		s.lenders[arg(1)].Return(s.wait(arg(1)))
		return s.answer()
	case "takeback":
		return pick(s.lenders[arg(1)].TakeBack(s.wait(arg(1))), "told", "taken")
	case "free":
		var all []string
		for _, name := range s.order {
			all = append(all, fmt.Sprintf("%s=%d", name, s.limiters[name].free))
		}
		return strings.Join(all, " ")
	case "state":
		var all []string
		for _, name := range words[1:] {
			all = append(all, s.tasks[name].State().String())
		}
		return strings.Join(all, " ")
	}
	return "no such event: " + words[0]
}

func (s *script) limit(name, size, outer string) string {
	n, err := strconv.Atoi(size)
	if err != nil {
		return err.Error()
	}
	l := NewLimiter(n, s.limiters[outer])
	for _, other := range s.order {
		if s.limiters[other] == l {
			s.limiters[name] = l
			return other
		}
	}
	s.order, s.limiters[name] = append(s.order, name), l
	return name
}

func (s *script) submit(name, limiter string, options []string) string {
	t := &testTask{Owner: name, Limiter: s.limiters[limiter]}
	for _, o := range options {
		what, value, _ := strings.Cut(o, "=")
		n, _ := strconv.Atoi(value)
		switch what {
		case "depth":
			t.Depth = int32(n)
		case "priority":
			t.Priority = n
		case "executor":
			t.ByExecutor = true
		}
	}
	if old := s.tasks[name]; old != nil && old.state != New {
		t = old // to submit again what was retired before
	}
	s.tasks[name] = t
	return pick(t.Submit(), "starts "+name, "queued")
}

// wait returns a wait by its name, the same each time.
func (s *script) wait(name string) *testWait {
	if s.waits[name] == nil {
		s.waits[name] = &testWait{Owner: name}
	}
	return s.waits[name]
}

// check counts the slots.
func (s *script) check(t *testing.T) {
	t.Helper()
	all := make([]*testTask, 0, len(s.tasks))
	for _, task := range s.tasks {
		all = append(all, task)
	}
	for _, name := range s.order {
		checkLimiter(t, s.limiters[name], all)
	}
}

// checkLimiter checks what holds for l between two events.
func checkLimiter(t *testing.T, l *testLimiter, all []*testTask) {
	t.Helper()
	free, queueing, handed, between := l.size, 0, 0, 0
	for _, task := range all {
		if !task.Limiter.isInside(l) {
			continue
		}
		holds := task.state == Handed || task.state == Running
		if task.at != nil { // it holds those inside of where it queues
			holds = l != task.at && l.isInside(task.at)
			if task.at == l {
				queueing++
			}
			if holds && task.state == Queued {
				between++
			}
		}
		if holds {
			free--
		}
		if task.state == Handed {
			handed++
		}
	}
	require.Equal(t, free, l.free, "free slots")
	require.Equal(t, handed, l.reachable, "those that can be recalled")
	if l.free > 0 {
		require.Zero(t, queueing, "a slot is free and somebody queues")
	}
	for _, task := range l.between {
		require.True(t, task.state == Queued && task.at != l && l.isInside(task.at) && task.Limiter.isInside(l), "%s is not between", task.Owner)
	}
	require.Len(t, l.between, between)
	if !l.returning.empty() {
		require.Zero(t, between, "somebody returns, and one that has not started holds a slot")
		require.Zero(t, l.reachable, "somebody returns, and a slot could be recalled")
	}
}

// answer puts what an event says, and its grants, into words.
func (s *script) answer(said ...string) string {
	for _, g := range s.limiters[s.order[0]].Take(nil) {
		if g.Wait != nil {
			said = append(said, "tells "+g.Wait.Owner)
		} else {
			said = append(said, "starts "+g.Task.Owner)
		}
	}
	if len(said) == 0 {
		return "nothing"
	}
	return strings.Join(said, ", ")
}

func pick(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}
