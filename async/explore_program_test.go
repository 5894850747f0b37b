//go:build explore

package async

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// This file makes small programs by chance: what to explore. A program is data,
// so it does not depend on the order in which it runs.

// A deed is one thing that a handler or a body does.
type deed struct {
	what   stepKind
	n      int           // which future, which executor, how many
	d      time.Duration // 0: none
	opts   taskBits
	limit  int
	repeat int  // so often the parts are items
	asks   bool // of a scope: it has OnPanic
	end    deedEnd
	parts  [][]deed // what handlers in it do
}

type stepKind uint8

const (
	doStart stepKind = iota
	doGo
	doAwait
	doWait
	doAwaitAll
	doCancel
	doDone
	doSleep
	doTouch // asks everything of its context
	doHang  // an hour, unless it is stopped
	doScope
	doWithTimeout // the rest of the handler under a context with a timeout
	doWithCancel  // a context that is cancelled by another goroutine
	doWithoutCancel
	doWithValue
	doRace
	doAny
	doAll
	doSettle
	doHedge
	doQuorum
	doForEach
	doMap
	doForkJoin
	doCompleted
	doPoll
	doPromise
	doShield
	doOnExit
	doDoomed // a task that would take an hour, and is cancelled through its handle
	stepKinds
)

func (k stepKind) String() string {
	return [...]string{"start", "go", "await", "wait", "awaitall", "cancel", "done", "sleep", "touch", "hang", "scope", "withtimeout", "withcancel",
		"withoutcancel", "withvalue", "race", "any", "all", "settle", "hedge", "quorum", "foreach", "map", "forkjoin", "completed", "poll", "promise", "shield", "onexit", "doomed"}[k]
}

// taskBits say which options a task has.
type taskBits uint16

const (
	withTimeout taskBits = 1 << iota
	withGrace
	withAbort
	withDiscard
	withExecutor
	withDaemon
	withRestart
	withStopOn
	withLeader
)

// deedEnd is how a handler ends.
type deedEnd uint8

const (
	endValue deedEnd = iota // a value, whatever its steps came to
	endFirst                // the first error of a deed, else a value
	endError
	endPanic
	endGoexit
)

func (s deed) String() string {
	var b strings.Builder
	s.write(&b, "")
	return b.String()
}

func (s deed) write(b *strings.Builder, indent string) {
	fmt.Fprintf(b, "%s%v n=%d d=%v opts=%09b limit=%d end=%d asks=%v\n", indent, s.what, s.n, s.d, s.opts, s.limit, s.end, s.asks)
	for _, p := range s.parts {
		fmt.Fprintf(b, "%s {\n", indent)
		for _, s := range p {
			s.write(b, indent+"  ")
		}
		fmt.Fprintf(b, "%s }\n", indent)
	}
}

// A maker makes a program.
type maker struct {
	*rand.Rand
	tasks  int  // that may still be started
	hang   bool // handlers may wait for an hour
	panics bool
	kinds  []stepKind // this program has only these: few kinds at a time meet more often
}

// makeProgram returns a scope that is to be run.
func makeProgram(r *rand.Rand) deed {
	m := &maker{Rand: r, tasks: 3 + r.IntN(4), hang: r.IntN(3) == 0, panics: r.IntN(8) == 0}
	for k := range stepKinds {
		if k != doHang && (k <= doTouch && r.IntN(3) > 0 || r.IntN(4) == 0) {
			m.kinds = append(m.kinds, k)
		}
	}
	switch r.IntN(4) {
	case 0: // waits under derived contexts, whose waiters pass from one to the next
		m.kinds = []stepKind{doAwait, doWait, doSleep, doWithCancel, doWithTimeout, doWithValue, doWithCancel, doWithTimeout}
	case 1, 2: // only two or three kinds, besides
		m.kinds = m.kinds[:0]
		for range 2 + r.IntN(2) {
			if k := stepKind(r.IntN(int(stepKinds))); k != doHang {
				m.kinds = append(m.kinds, k)
			}
		}
	}
	m.kinds = append(m.kinds, doStart, doGo, doAwait)
	s := m.scope(0)
	if m.hang {
		s.d = m.millis(5) // which ends all that hangs
	}
	return s
}

func (m *maker) millis(n int) time.Duration { return time.Duration(1+m.IntN(n)) * time.Millisecond }

func (m *maker) scope(depth int) deed {
	s := deed{what: doScope, parts: [][]deed{m.steps(depth + 1)}, end: endFirst}
	if m.IntN(3) == 0 {
		s.limit = 1 + m.IntN(2)
	}
	if m.IntN(4) == 0 {
		s.d = m.millis(3)
	}
	if m.IntN(4) == 0 {
		s.opts |= withExecutor
	}
	s.n = m.IntN(8)
	if m.IntN(2) == 0 {
		s.end = endValue
	}
	s.asks = m.panics && m.IntN(2) == 0
	return s
}

// steps returns what one handler does.
func (m *maker) steps(depth int) (all []deed) {
	for range 1 + m.IntN(4-min(depth, 2)) {
		all = append(all, m.deed(depth))
	}
	if m.hang && depth > 1 && m.IntN(4) == 0 {
		all = append(all, deed{what: doHang})
	}
	return all
}

func (m *maker) deedEnd() deedEnd {
	switch n := m.IntN(10); {
	case n >= 7 && m.panics:
		return endPanic + deedEnd(m.IntN(2))
	case n < 5:
		return endValue
	case n < 8:
		return endFirst
	default:
		return endError
	}
}

// taskBits returns options of a task: a quarter of them.
func (m *maker) taskBits() (bits taskBits) {
	for bit := withTimeout; bit <= withLeader; bit <<= 1 {
		if m.IntN(4) == 0 {
			bits |= bit
		}
	}
	return bits
}

func (m *maker) deed(depth int) deed {
	s := deed{what: m.kinds[m.IntN(len(m.kinds))], n: m.IntN(16), end: m.deedEnd(), opts: m.taskBits()}
	if m.IntN(3) == 0 {
		s.d = m.millis(3)
	}
	handlers := 0
	switch s.what {
	case doStart, doGo, doPoll, doPromise, doShield, doOnExit, doWithTimeout, doWithCancel, doWithoutCancel, doWithValue:
		handlers = 1
	case doRace, doAny, doAll, doSettle, doHedge, doQuorum, doForEach, doMap, doForkJoin, doCompleted:
		handlers = 2 + m.IntN(2)
		s.limit = m.IntN(3)
		if s.what == doMap || s.what == doCompleted || s.what == doForEach {
			s.repeat = 1 + m.IntN(2)
		}
	case doScope:
		if m.tasks > 0 && depth < 3 {
			return m.scope(depth)
		}
		s.what = doSleep
	}
	if handlers > m.tasks || depth >= 4 && handlers > 0 {
		return deed{what: doSleep, d: s.d}
	}
	if s.what != doWithTimeout && s.what != doWithCancel && s.what != doWithValue {
		m.tasks -= handlers
	}
	if s.end == endGoexit && s.what != doStart && s.what != doGo {
		s.end = endPanic // on the caller's goroutine it would be the end of the program
	}
	without := m.hang
	if s.what == doWithoutCancel || s.what == doShield || s.what == doOnExit {
		m.hang = false // nobody would end it
	}
	for range handlers {
		s.parts = append(s.parts, m.steps(depth+1))
	}
	m.hang = without
	return s
}
