package slots

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A model is what the core does, written to be read and not to be fast: slices
// that are searched from the front, and no links. The fuzzer plays random
// events to both and compares every answer.
type model struct {
	limits []*modelLimit
	tasks  []*modelTask
	waits  []*modelWait
	handed []*modelTask // the latest last
	parked []*modelTask // that have queued to start with slots in hand, the latest last
	out    []string
}

type modelLimit struct {
	size, used int
	outer      *modelLimit
	returning  []*modelTask // as they came
	starting   []*modelTask // as they came
}

type modelTask struct {
	name            string
	limit           *modelLimit
	depth, priority int
	byExecutor      bool
	state           State
	wait            *modelWait
	lenders         []*modelWait
}

type modelWait struct {
	name  string
	task  *modelTask
	state waitState
}

// chain returns the limits from l outwards.
func (l *modelLimit) chain() (all []*modelLimit) {
	for ; l != nil; l = l.outer {
		all = append(all, l)
	}
	return all
}

// queuesAt returns where t queues, nil if nowhere.
func (t *modelTask) queuesAt() *modelLimit {
	for _, l := range t.limit.chain() {
		if slices.Contains(l.returning, t) || slices.Contains(l.starting, t) {
			return l
		}
	}
	return nil
}

// obtain takes slots from l outwards; t queues where it cannot go on.
func (m *model) obtain(t *modelTask, l *modelLimit) bool {
	for _, l := range l.chain() {
		if t.wait != nil && (l.used >= l.size || len(l.returning) > 0) {
			l.returning = append(l.returning, t)
			return false
		}
		if t.wait == nil && (l.used >= l.size || len(l.returning)+len(l.starting) > 0) {
			l.starting = append(l.starting, t)
			m.parked = append(slices.DeleteFunc(m.parked, func(o *modelTask) bool { return o == t }), t)
			return false
		}
		l.used++
	}
	return true
}

// next takes the task off the queues of l that goes first.
func (l *modelLimit) next() *modelTask {
	if len(l.returning) > 0 {
		t := l.returning[0]
		l.returning = l.returning[1:]
		return t
	}
	if len(l.starting) == 0 {
		return nil
	}
	first := 0
	for i, t := range l.starting {
		f := l.starting[first]
		if t.depth > f.depth || t.depth == f.depth && t.priority > f.priority {
			first = i
		}
	}
	t := l.starting[first]
	l.starting = slices.Delete(l.starting, first, first+1)
	return t
}

// release frees the slots of t inside end.
func (m *model) release(t *modelTask, end *modelLimit) { m.releaseFrom(t, t.limit, end) }

func (m *model) releaseFrom(t *modelTask, first, end *modelLimit) {
	for _, l := range first.chain() {
		if l == end {
			break
		}
		l.used--
		m.handOut(l)
	}
	m.recall(t.limit)
}

func (m *model) grant(t *modelTask) {
	switch {
	case t.wait != nil:
		m.out = append(m.out, "tells "+t.wait.name)
		t.wait.state, t.wait, t.state = inGrant, nil, Running
	case t.byExecutor:
		m.out = append(m.out, "starts "+t.name)
		t.state = Handed
		m.handed = append(m.handed, t)
	default:
		m.out = append(m.out, "starts "+t.name)
		t.state = Running
	}
}

func (m *model) recall(from *modelLimit) {
	for _, l := range from.chain() {
		for len(l.returning) > 0 {
			victim := m.lastToStartWithSlotOf(l)
			if victim == nil {
				break
			}
			at := m.unqueue(victim)
			l.starting = slices.Insert(l.starting, 0, victim)
			m.releaseFrom(victim, l, at)
		}
		for len(l.returning) > 0 {
			var victim *modelTask
			for _, t := range m.handed {
				if slices.Contains(t.limit.chain(), l) {
					victim = t
				}
			}
			if victim == nil {
				break
			}
			m.unhand(victim)
			victim.state = Recalled
			m.release(victim, nil)
		}
	}
}

// lastToStartWithSlotOf returns the task that starts last of those that queue
// further out than l with a slot of l in hand.
func (m *model) lastToStartWithSlotOf(l *modelLimit) (last *modelTask) {
	for _, t := range m.parked {
		if t.state != Queued || t.queuesAt() == l || !slices.Contains(t.limit.chain(), l) || !slices.Contains(l.chain(), t.queuesAt()) {
			continue
		}
		if last == nil || t.depth < last.depth || t.depth == last.depth && t.priority <= last.priority {
			last = t
		}
	}
	return last
}

func (m *model) unhand(t *modelTask) {
	m.handed = slices.DeleteFunc(m.handed, func(o *modelTask) bool { return o == t })
}

func (m *model) unqueue(t *modelTask) (at *modelLimit) {
	at = t.queuesAt()
	same := func(o *modelTask) bool { return o == t }
	at.returning = slices.DeleteFunc(at.returning, same)
	at.starting = slices.DeleteFunc(at.starting, same)
	return at
}

func (m *model) submit(t *modelTask) string {
	if !m.obtain(t, t.limit) {
		t.state = Queued
		return "queued"
	}
	m.grant(t)
	m.out = nil
	return "starts " + t.name
}

func (m *model) withdraw(t *modelTask) string {
	if t.state != Queued {
		return "too late"
	}
	at := m.unqueue(t)
	t.state = Retired
	m.release(t, at)
	return "withdrawn"
}

func (m *model) begin(t *modelTask, w *modelWait) string {
	switch t.state {
	case Handed:
		m.unhand(t)
		t.state = Running
		return "runs"
	case Retired:
		return "runs"
	}
	t.wait, t.state = w, Returning
	w.task, w.state = t, queueing
	if m.obtain(t, t.limit) {
		m.grant(t)
		m.out = nil
		return "runs"
	}
	m.recall(t.limit)
	return "waits"
}

func (m *model) lend(t *modelTask, w *modelWait) string {
	switch t.state {
	case Retired:
		return "not lent"
	case Running:
		t.state = Lent
		m.release(t, nil)
	case Returning:
		m.dropReturn(t)
		t.state = Lent
	}
	w.task, w.state = t, lending
	t.lenders = append(t.lenders, w)
	return "lent"
}

// dropReturn takes t out of the queue in which it returns.
func (m *model) dropReturn(t *modelTask) {
	at := m.unqueue(t)
	m.out = append(m.out, "tells "+t.wait.name)
	t.wait.state, t.wait = inGrant, nil
	m.release(t, at)
}

func (m *model) giveBack(w *modelWait) {
	if w.state != lending {
		return
	}
	t := w.task
	t.lenders = slices.DeleteFunc(t.lenders, func(o *modelWait) bool { return o == w })
	if t.state != Lent || len(t.lenders) > 0 {
		w.state = inGrant
		m.out = append(m.out, "tells "+w.name)
		return
	}
	t.wait, t.state, w.state = w, Returning, queueing
	if m.obtain(t, t.limit) {
		m.grant(t)
		return
	}
	m.recall(t.limit)
}

func (m *model) takeBack(w *modelWait) string {
	from := (*modelLimit)(nil)
	t := w.task
	switch w.state {
	case inGrant:
		return "told"
	case lending:
		t.lenders = slices.DeleteFunc(t.lenders, func(o *modelWait) bool { return o == w })
		if t.state == Lent && len(t.lenders) == 0 {
			from = t.limit
		}
	case queueing:
		from = m.unqueue(t)
		t.wait = nil
	}
	w.state = idle
	for _, l := range from.chain() {
		l.used++
		t.state = Running
	}
	return "taken"
}

func (m *model) cut(l *modelLimit) {
	if l.outer == nil {
		return
	}
	outside := l.outer.chain()
	var queueing []*modelTask
	isOutside := func(t *modelTask) bool {
		return slices.Contains(t.limit.chain(), l) && t.queuesAt() != nil && slices.Contains(outside, t.queuesAt())
	}
	for _, t := range m.parked {
		if t.state == Queued && isOutside(t) {
			queueing = append(queueing, t)
		}
	}
	for _, o := range outside {
		for _, t := range o.returning {
			if isOutside(t) {
				queueing = append(queueing, t)
			}
		}
	}
	for _, t := range m.tasks {
		if slices.Contains(t.limit.chain(), l) && (t.state == Handed || t.state == Running) {
			for _, o := range outside {
				o.used--
			}
		}
	}
	for _, t := range queueing {
		at := m.unqueue(t)
		for _, o := range outside {
			if o == at {
				break
			}
			o.used--
		}
	}
	l.outer = nil
	for _, t := range queueing {
		m.grant(t)
	}
	for _, o := range outside {
		m.handOut(o)
	}
}

// handOut gives the free slots of l to those who queue.
func (m *model) handOut(l *modelLimit) {
	for l.used < l.size {
		n := l.next()
		if n == nil {
			break
		}
		l.used++
		if m.obtain(n, l.outer) {
			m.grant(n)
		}
	}
}

func (m *model) retire(t *modelTask) {
	switch before := t.state; before {
	case Queued:
		m.withdraw(t)
	case Handed:
		m.unhand(t)
		m.release(t, nil)
	case Running:
		m.release(t, nil)
	case Returning:
		m.dropReturn(t)
	}
	t.state = Retired
}

// FuzzTheCoreAgreesWithTheModel plays events, two bytes each, to the core and
// to the model.
func FuzzTheCoreAgreesWithTheModel(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 0, 1, 0, 2, 3, 0, 0, 3, 4, 0, 6, 1})
	f.Add([]byte{2, 7, 0, 16, 0, 17, 0, 18, 0, 35, 3, 0, 3, 1, 0, 19, 4, 0, 4, 1, 5, 0, 2, 2, 6, 1, 6, 2})
	f.Add([]byte{0, 133, 0, 1, 0, 1, 0, 0, 0, 1, 7, 1, 3, 0, 7, 2, 6, 0})
	f.Add([]byte{3, 255, 0, 240, 0, 241, 0, 242, 3, 3, 4, 4, 5, 5, 6, 6, 2, 7, 3, 1, 4, 1, 1, 2, 0, 99})
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) < 2 || len(script) > 600 {
			return
		}
		m, s := &model{}, newScript()
		// Limits: the second byte is their sizes and how they are nested.
		m.limits = append(m.limits, &modelLimit{size: int(script[0])%4 + 2})
		s.limit("l0", fmt.Sprint(m.limits[0].size), "")
		for i := range 3 {
			outer := int(script[1]>>(2*i)) % len(m.limits)
			size := m.limits[outer].size - 1
			if size < 1 {
				continue
			}
			name := fmt.Sprintf("l%d", len(m.limits))
			if script[1]&128 != 0 && i == 0 { // one that changes nothing
				m.limits = append(m.limits, &modelLimit{size: size + 1, outer: m.limits[outer]})
				s.do([]string{"layer", name, fmt.Sprintf("l%d", outer)})
				continue
			}
			m.limits = append(m.limits, &modelLimit{size: size, outer: m.limits[outer]})
			require.Equal(t, name, s.limit(name, fmt.Sprint(size), fmt.Sprintf("l%d", outer)))
		}
		for i := 2; i+1 < len(script); i += 2 {
			m.out = nil
			event, got, want := play(m, s, script[i], int(script[i+1]))
			require.Equal(t, want, got, event)
			s.check(t)
			for _, task := range m.tasks {
				require.Equal(t, task.state, s.tasks[task.name].State(), "%s: %s", event, task.name)
			}
		}
		for _, task := range m.tasks {
			s.tasks[task.name].Retire()
		}
		for _, l := range s.limiters {
			require.Equal(t, l.size, l.free, "every slot is free in the end")
			require.True(t, l.returning.empty() && l.starting.empty())
		}
	})
}

// play plays one event, if it makes sense now, and returns it with both answers.
func play(m *model, s *script, kind byte, arg int) (event, got, want string) {
	if kind%8 == 0 || len(m.tasks) == 0 {
		return playSubmit(m, s, kind, arg)
	}
	t := m.tasks[arg%len(m.tasks)]
	fresh := func() *modelWait {
		w := &modelWait{name: fmt.Sprintf("w%d", len(m.waits))}
		m.waits = append(m.waits, w)
		return w
	}
	said := ""
	switch kind % 8 {
	case 1:
		event, said = "withdraw "+t.name, m.withdraw(t)
	case 2:
		if !t.byExecutor || t.state != Handed && t.state != Recalled && t.state != Retired {
			return "", "", ""
		}
		w := fresh()
		event, said = "begin "+t.name+" "+w.name, m.begin(t, w)
	case 3:
		if t.state < Running {
			return "", "", ""
		}
		w := fresh()
		event, said = "lend "+t.name+" "+w.name, m.lend(t, w)
	case 4, 5:
		if len(m.waits) == 0 {
			return "", "", ""
		}
		w := m.waits[arg%len(m.waits)]
		if w.task == nil {
			return "", "", ""
		}
		if kind%8 == 5 {
			event, said = "takeback "+w.name, m.takeBack(w)
		} else {
			event = "return " + w.name
			m.giveBack(w)
		}
	case 6:
		event = "retire " + t.name
		m.retire(t)
	case 7:
		l := arg % len(m.limits)
		event = fmt.Sprintf("cut l%d", l)
		m.cut(m.limits[l])
	}
	if said != "" {
		m.out = append([]string{said}, m.out...)
	}
	if len(m.out) == 0 {
		m.out = []string{"nothing"}
	}
	return event, s.do(strings.Fields(event)), strings.Join(m.out, ", ")
}

func playSubmit(m *model, s *script, kind byte, arg int) (event, got, want string) {
	l := arg % len(m.limits)
	t := &modelTask{name: fmt.Sprintf("t%d", len(m.tasks)), limit: m.limits[l], depth: arg >> 2 & 1, priority: arg>>3&3 - 1, byExecutor: kind >= 128}
	m.tasks = append(m.tasks, t)
	event = fmt.Sprintf("submit %s l%d depth=%d priority=%d", t.name, l, t.depth, t.priority)
	if t.byExecutor {
		event += " executor"
	}
	return event, s.do(strings.Fields(event)), m.submit(t)
}
