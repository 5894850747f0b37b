package top

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/look"
	"github.com/ambit-go/ambit/taskqueue/internal/plain"
)

// Styles of a terminal. Of those the colours are left out where NO_COLOR is set.
const (
	bold    = "1"
	dim     = "2"
	inverse = "7"
	red     = "31"
	yellow  = "33"
)

func (m *model) paint(style, s string) string {
	if style == "" || !m.styled || !m.color && style[0] == '3' {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

// frame returns the lines of the screen: never more than it has, and none wider.
func (m *model) frame() []string {
	if m.help {
		return m.bounded(help)
	}
	lines := m.head()
	queues := m.queues()
	list := m.list()
	// The queues have what they need, up to half of the screen or so; the list has the rest.
	room := max(m.height-len(lines)-3, 0) // without a blank line, the title of the list, and the last line
	top := min(len(queues), max(room/2, room-len(list), 3))
	at := 1 // the row that is selected
	for i, q := range m.sorted() {
		if q.Name == m.selected {
			at += i
		}
	}
	lines = append(lines, window(queues, top, at)...)
	lines = append(lines, "", m.tabs())
	left := max(m.height-len(lines)-1, 0)
	m.scroll = max(min(m.scroll, len(list)-left), 0)
	if m.scroll > 0 && left > 1 {
		list = append(list[:1:1], list[1+m.scroll:]...)
	}
	lines = append(lines, list[:min(left, len(list))]...)
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	lines = lines[:max(m.height-1, 0)]
	return append(lines, m.foot())
}

// window returns the head of a table, and as many of its rows as fit so that one of them
// is among those.
func window(lines []string, height, at int) []string {
	if height >= len(lines) || height < 2 {
		return lines[:min(max(height, 0), len(lines))]
	}
	first := min(max(at-height/2, 1), len(lines)-height+1)
	return append(lines[:1:1], lines[first:first+height-1]...)
}

func (m *model) bounded(lines []string) []string {
	var all []string
	for _, l := range lines[:min(len(lines), m.height)] {
		all = append(all, cut(l, m.width))
	}
	return all
}

var help = []string{
	"taskq top",
	"",
	"  up, down, k, j       select a queue",
	"  home, end, g, G      the first, the last queue",
	"  s, S                 sort the queues by something else",
	"  tab, left, right     another list; 1 running, 2 dead letters, 3 retrying, 4 periodic",
	"  pageup, pagedown     scroll the list",
	"  enter, a             the list of the selected queue alone, or of all",
	"  p                    pause the selected queue, or resume it; it asks first",
	"  space                hold the picture, or have it go on",
	"  h, ?                 this help",
	"  q, Ctrl-C            end",
	"  Ctrl-Z               stop; fg goes on",
	"",
	"LATE is how late the task is that waits longest. IN, DONE and FAIL are a second,",
	"over the last ten or so. LEASE is how long the worker has until it must say that",
	"it is still there.",
	"",
	"Any key goes back.",
}

// head is what stands above the queues.
func (m *model) head() []string {
	title := "taskq top  " + m.store
	if m.now == nil {
		text := "asks the store …"
		if m.err != nil {
			text = m.trouble()
		}
		return []string{m.paint(bold, cut(title, m.width)), cut(text, m.width)}
	}
	state := ""
	if m.frozen {
		state = "  HELD (space goes on)"
	}
	lines := []string{m.paint(bold, cut(title+"  "+m.now.At.UTC().Format("15:04:05")+" UTC"+state, m.width)), cut(m.totals(), m.width)}
	if m.err != nil {
		lines = append(lines, m.paint(red, cut(m.trouble(), m.width)))
	}
	if m.now.MoreQueues > 0 {
		lines = append(lines, cut(fmt.Sprintf("%d more queues are not shown: name those that you want to see, as in taskq top mail reports", m.now.MoreQueues), m.width))
	}
	return append(lines, "")
}

func (m *model) trouble() string { return "the store does not answer: " + plain.Line(m.err.Error()) }

// totals sums up all queues.
func (m *model) totals() string {
	n := map[taskqueue.State]int64{}
	rates := map[taskqueue.Counter]float64{}
	late, known := 0.0, false
	for _, q := range m.now.Queues {
		for s := range q.States {
			n[s] += q.States[s]
		}
		for c := range q.Rates {
			rates[c] += q.Rates[c]
		}
		late, known = max(late, q.LateSeconds), known || q.RateSeconds > 0
	}
	text := fmt.Sprintf("ready %s (late by %s)  running %s  retrying %s  dead %s  scheduled %s",
		plain.Count(n[taskqueue.StateReady]), plain.Span(late), plain.Count(n[taskqueue.StateRunning]), plain.Count(n[taskqueue.StateRetrying]),
		plain.Count(n[taskqueue.StateDead]), plain.Count(n[taskqueue.StateScheduled]))
	if known {
		text += fmt.Sprintf("  in %s/s  done %s/s  failed %s/s", plain.Rate(rates[taskqueue.CountAdded]), plain.Rate(rates[taskqueue.CountDone]), plain.Rate(rates[taskqueue.CountFailed]))
	}
	return text
}

var queueColumns = []column{
	{title: "QUEUE", most: 40},
	{title: "READY", right: true, drop: 1},
	{title: "LATE", right: true, drop: 2},
	{title: "RUN", right: true, drop: 3},
	{title: "RETRY", right: true, drop: 6},
	{title: "DEAD", right: true, drop: 4},
	{title: "SCHED", right: true, drop: 7},
	{title: "IN/S", right: true, drop: 9},
	{title: "DONE/S", right: true, drop: 5},
	{title: "FAIL/S", right: true, drop: 8},
	{title: "SETTINGS", drop: 10},
}

// queues is the table of queues, its head first.
func (m *model) queues() []string {
	all := m.sorted()
	rows, styles := make([][]string, len(all)), make([][]string, len(all))
	for i, q := range all {
		n := func(s taskqueue.State) string { return plain.Count(q.States[s]) }
		rate := func(c taskqueue.Counter) string {
			if q.RateSeconds == 0 {
				return "-"
			}
			return plain.Rate(q.Rates[c])
		}
		set := m.settings(&q)
		rows[i] = []string{plain.Line(q.Name), n(taskqueue.StateReady), plain.Span(q.LateSeconds), n(taskqueue.StateRunning), n(taskqueue.StateRetrying),
			n(taskqueue.StateDead), n(taskqueue.StateScheduled), rate(taskqueue.CountAdded), rate(taskqueue.CountDone), rate(taskqueue.CountFailed), set}
		styles[i] = make([]string, len(queueColumns))
		if q.States[taskqueue.StateRetrying] > 0 {
			styles[i][4] = yellow
		}
		if q.States[taskqueue.StateDead] > 0 {
			styles[i][5] = red
		}
		if m.paused(&q) || q.Error != "" {
			styles[i][10] = yellow
		}
	}
	lines := m.table(queueColumns, rows, styles, func(i int) bool { return m.styled && all[i].Name == m.selected })
	if len(all) == 0 && m.now != nil {
		lines = append(lines, cut("there is no queue yet: the first task makes one", m.width))
	}
	return lines
}

// settings says what is set for a queue, or that it cannot be read.
func (m *model) settings(q *look.Queue) string {
	var all []string
	add := func(is bool, format string, args ...any) {
		if is {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	add(q.Error != "", "unreadable: %s", plain.Line(q.Error))
	add(m.paused(q), "paused")
	add(q.Settings.Concurrency > 0, "at most %d run", q.Settings.Concurrency)
	add(q.Settings.Rate > 0, "at most %v/s", q.Settings.Rate)
	return strings.Join(all, ", ")
}

// table lays rows out below the titles of their columns.
func (m *model) table(cols []column, rows, styles [][]string, selected func(i int) bool) []string {
	widths := layout(m.width, cols, rows)
	titles := make([]string, len(cols))
	for i, c := range cols {
		titles[i] = c.title
	}
	lines := []string{m.row(cols, widths, titles, nil, bold)}
	for i, cells := range rows {
		base := ""
		if selected(i) {
			base = inverse
		}
		var of []string
		if styles != nil {
			of = styles[i]
		}
		lines = append(lines, m.row(cols, widths, cells, of, base))
	}
	return lines
}

// tabs is the line above the list: which there are, and whose it is.
func (m *model) tabs() string {
	var n [panels]int64
	if m.now != nil {
		for _, q := range m.now.Queues {
			if !m.alone || q.Name == m.selected {
				n[running] += q.States[taskqueue.StateRunning]
				n[dead] += q.States[taskqueue.StateDead]
				n[retrying] += q.States[taskqueue.StateRetrying]
			}
		}
		n[periodic] = int64(len(m.of().Periodic))
	}
	text := ""
	for p, name := range [...]string{"running", "dead letters", "retrying", "periodic"} {
		tab := fmt.Sprintf("%d %s %s", p+1, name, plain.Count(n[p]))
		if panel(p) == m.panel {
			tab = "[" + tab + "]"
		} else {
			tab = " " + tab + " "
		}
		text += tab + " "
	}
	if m.alone {
		text += " only of " + plain.Line(m.selected)
	}
	return m.paint(dim, cut(text, m.width))
}

// of is what the lists are made of.
func (m *model) of() *look.Snapshot {
	if m.now != nil && m.alone {
		return m.now.Of(m.selected)
	}
	return m.now
}

// list is the list that is shown, its head first.
func (m *model) list() []string {
	if m.now == nil {
		return nil
	}
	switch s := m.of(); m.panel {
	case dead:
		return m.tasks(s.Dead, deadColumns, func(t look.Task) []string {
			return []string{t.ID, t.Queue, t.Type, m.ago(t.EndedAt), of(t.Failures, t.MaxFailures), of(t.Crashes, t.MaxCrashes), t.Error}
		})
	case retrying:
		return m.tasks(s.Retrying, retryColumns, func(t look.Task) []string {
			return []string{t.ID, t.Queue, t.Type, m.until(t.DueAt), of(t.Failures, t.MaxFailures), of(t.Crashes, t.MaxCrashes), t.Error}
		})
	case periodic:
		return m.jobs(s.Periodic)
	default:
		return m.tasks(s.Running, runColumns, func(t look.Task) []string {
			what := t.Progress
			if t.CancelRequested {
				what = "asked to stop  " + what
			}
			return []string{t.ID, t.Queue, t.Type, m.ago(t.StartedAt), m.until(t.LeaseEnd), strconv.Itoa(t.Attempt), t.Worker, what}
		})
	}
}

var (
	runColumns = []column{{title: "TASK", most: 40}, {title: "QUEUE", most: 20, drop: 4}, {title: "TYPE", most: 20, drop: 5}, {title: "FOR", right: true, drop: 1},
		{title: "LEASE", right: true, drop: 2}, {title: "TRY", right: true, drop: 6}, {title: "WORKER", most: 30, drop: 7}, {title: "PROGRESS", drop: 3}}
	deadColumns = []column{{title: "TASK", most: 40}, {title: "QUEUE", most: 20, drop: 4}, {title: "TYPE", most: 20, drop: 5}, {title: "SINCE", right: true, drop: 2},
		{title: "FAILURES", right: true, drop: 6}, {title: "CRASHES", right: true, drop: 7}, {title: "WHY", drop: 1}}
	retryColumns = []column{{title: "TASK", most: 40}, {title: "QUEUE", most: 20, drop: 4}, {title: "TYPE", most: 20, drop: 5}, {title: "AGAIN IN", right: true, drop: 2},
		{title: "FAILURES", right: true, drop: 6}, {title: "CRASHES", right: true, drop: 7}, {title: "LAST ERROR", drop: 1}}
	jobColumns = []column{{title: "JOB", most: 40}, {title: "QUEUE", most: 20, drop: 2}, {title: "LAST TICK", right: true, drop: 1}, {title: "SCHEDULE", drop: 3}}
)

func (m *model) tasks(all []look.Task, cols []column, cells func(t look.Task) []string) []string {
	rows := make([][]string, len(all))
	for i, t := range all {
		rows[i] = cells(t)
		for c := range rows[i] {
			rows[i][c] = plain.Line(strings.TrimSpace(rows[i][c]))
		}
	}
	return m.table(cols, rows, nil, func(int) bool { return false })
}

func (m *model) jobs(all []look.Periodic) []string {
	rows := make([][]string, len(all))
	for i, p := range all {
		last := "none yet"
		if !p.Last.IsZero() {
			last = m.ago(p.Last)
		}
		rows[i] = []string{plain.Line(p.Name), plain.Line(p.Queue), last, plain.Line(p.Schedule)}
	}
	return m.table(jobColumns, rows, nil, func(int) bool { return false })
}

// ago and until are how long a time is from that of the picture.
func (m *model) ago(t time.Time) string { return plain.Span(max(m.now.At.Sub(t).Seconds(), 0)) }

func (m *model) until(t time.Time) string {
	if left := t.Sub(m.now.At).Seconds(); left > 0 {
		return plain.Span(left)
	}
	return "over"
}

func of(n, most int) string { return fmt.Sprintf("%d of %d", n, most) }

// foot is the last line: a question, what was done, or the keys.
func (m *model) foot() string {
	switch {
	case m.ask != nil && m.ask.paused:
		return m.paint(bold, cut(fmt.Sprintf("pause queue %s? y or n", plain.Line(m.ask.queue)), m.width))
	case m.ask != nil:
		return m.paint(bold, cut(fmt.Sprintf("resume queue %s? y or n", plain.Line(m.ask.queue)), m.width))
	case m.note != "":
		return m.paint(bold, cut(plain.Line(m.note), m.width))
	}
	return m.paint(dim, cut(fmt.Sprintf("q end  ? help  s sort: %s  tab list  enter only this queue  p pause  space hold", orders[m.order].name), m.width))
}

// text is the picture without a terminal: all of it.
func (m *model) text() []string {
	m.width, m.height = 1<<20, 1<<20
	lines := append(m.head(), m.queues()...)
	for p, name := range [...]string{"running", "dead letters", "retrying", "periodic jobs"} {
		m.panel = panel(p)
		if list := m.list(); len(list) > 1 {
			lines = append(lines, "", name+":")
			lines = append(lines, list...)
		}
	}
	return lines
}
