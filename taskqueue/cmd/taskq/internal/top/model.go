package top

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/look"
	"github.com/ambit-go/ambit/taskqueue/internal/plain"
)

// What a signal is about.
type signalKind uint8

const (
	resized signalKind = iota
	stops
	goesOn
	ends
)

// An action is what the loop has to do for a key.
type action struct {
	what   actionKind
	queue  string
	paused bool
}

type actionKind uint8

const (
	nothing actionKind = iota
	quit
	suspended
	setPaused
)

// A panel is one of the lists below the queues.
type panel uint8

const (
	running panel = iota
	dead
	retrying
	periodic
	panels
)

// An order is by what the queues are sorted.
type order struct {
	name string
	by   func(a, b *look.Queue) int // the first comes first
}

// most has the greatest first.
func most(f func(q *look.Queue) float64) func(a, b *look.Queue) int {
	return func(a, b *look.Queue) int { return cmp.Compare(f(b), f(a)) }
}

func in(s taskqueue.State) func(q *look.Queue) float64 {
	return func(q *look.Queue) float64 { return float64(q.States[s]) }
}

var orders = []order{
	{"name", func(a, b *look.Queue) int { return strings.Compare(a.Name, b.Name) }},
	{"late", most(func(q *look.Queue) float64 { return q.LateSeconds })},
	{"ready", most(in(taskqueue.StateReady))},
	{"running", most(in(taskqueue.StateRunning))},
	{"dead", most(in(taskqueue.StateDead))},
	{"done/s", most(func(q *look.Queue) float64 { return q.Rates[taskqueue.CountDone] })},
}

// A model is what is shown. Keys change it.
type model struct {
	store  string
	styled bool // on a terminal
	color  bool

	width, height int
	now           *look.Snapshot // nil: nothing is known yet
	err           error
	selected      string // a queue; "" if there is none
	order         int
	panel         panel
	alone         bool // the lists are of the selected queue alone
	scroll        int  // how many rows of the list are above the screen
	frozen        bool
	help          bool
	ask           *action // a question that is open
	note          string
	// changed are the queues that were paused or resumed here since the picture was taken.
	changed map[string]change
}

// A change is that a queue was paused or resumed.
type change struct {
	paused bool
	at     time.Time
}

func newModel(c Config, styled bool) *model {
	return &model{store: plain.Line(c.Name), styled: styled, color: c.Env("NO_COLOR") == "", changed: map[string]change{}}
}

// take takes a new picture, or the error that there is none.
func (m *model) take(s *look.Snapshot, err error) {
	m.err = err
	if s == nil || m.frozen {
		return
	}
	m.now = s
	maps.DeleteFunc(m.changed, func(_ string, c change) bool { return c.at.Before(s.At) })
	m.pick(0)
}

// sorted are the queues in the order in which they are shown.
func (m *model) sorted() []look.Queue {
	if m.now == nil {
		return nil
	}
	all := slices.Clone(m.now.Queues)
	slices.SortStableFunc(all, func(a, b look.Queue) int {
		return cmp.Or(orders[m.order].by(&a, &b), strings.Compare(a.Name, b.Name))
	})
	return all
}

// pick selects the queue that stands so many rows below the one that is selected.
func (m *model) pick(down int) {
	all := m.sorted()
	if len(all) == 0 {
		m.selected = ""
		return
	}
	at := max(slices.IndexFunc(all, func(q look.Queue) bool { return q.Name == m.selected }), 0)
	m.selected = all[min(max(at+down, 0), len(all)-1)].Name
}

// key does what a key says, or returns what there is to do.
func (m *model) key(k string) action {
	if k == "\x03" || k == "q" && m.ask == nil && !m.help {
		return action{what: quit}
	}
	if k == "\x1a" {
		return action{what: suspended}
	}
	if m.ask != nil {
		return m.answer(k)
	}
	if m.help {
		m.help = false // any key
		return action{}
	}
	m.note = ""
	m.move(k)
	switch k {
	case "s":
		m.order = (m.order + 1) % len(orders)
	case "S":
		m.order = (m.order + len(orders) - 1) % len(orders)
	case "\t", "right":
		m.show(m.panel + 1)
	case "backtab", "left":
		m.show(m.panel + panels - 1)
	case "1", "2", "3", "4":
		m.show(panel(k[0] - '1'))
	case "\r", "\n", "a":
		m.alone = !m.alone
		m.scroll = 0
	case " ":
		m.frozen = !m.frozen
	case "h", "?":
		m.help = true
	case "p":
		if m.selected != "" {
			m.ask = &action{what: setPaused, queue: m.selected, paused: !m.isPaused()}
		}
	}
	return action{}
}

// move does what keys for moving say.
func (m *model) move(k string) {
	switch k {
	case "up", "k":
		m.pick(-1)
	case "down", "j":
		m.pick(1)
	case "home", "g":
		m.pick(-1 << 20)
	case "end", "G":
		m.pick(1 << 20)
	case "pageup":
		m.scroll = max(m.scroll-5, 0)
	case "pagedown":
		m.scroll += 5 // no further than the list is long: frame sees to that
	}
}

func (m *model) show(p panel) { m.panel, m.scroll = p%panels, 0 }

// answer takes the answer to the open question. Only y is a yes.
func (m *model) answer(k string) action {
	do := *m.ask
	m.ask = nil
	if k != "y" && k != "Y" {
		m.note = "nothing was changed"
		return action{}
	}
	return do
}

// isPaused reports whether the selected queue is paused.
func (m *model) isPaused() bool {
	for _, q := range m.now.Queues {
		if q.Name == m.selected {
			return m.paused(&q)
		}
	}
	return false
}

func (m *model) paused(q *look.Queue) bool {
	if c, ok := m.changed[q.Name]; ok {
		return c.paused
	}
	return q.Settings.Paused
}
