package page

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/look"
	"github.com/ambit-go/ambit/taskqueue/internal/sums"
)

// metrics returns a picture in the text format of Prometheus. For a store that does not answer it says
// no more than that: figures of the past would look like the present.
func metrics(s *look.Snapshot, err error) []byte {
	m := new(exposition)
	m.family("taskqueue_up", "gauge", "Whether the store answers.")
	if err != nil {
		m.value(0)
		return m.Bytes()
	}
	m.value(1)
	m.family("taskqueue_look_seconds", "gauge", "How long it took to ask the store.")
	m.value(s.TookSeconds)
	m.family("taskqueue_queues_left_out", "gauge", "How many queues there are that are not looked at.")
	m.value(float64(s.MoreQueues))

	m.family("taskqueue_queue_up", "gauge", "Whether the queue could be read.")
	for _, q := range s.Queues {
		m.value(number(q.Error == ""), "queue", q.Name)
	}
	readable := slices.DeleteFunc(slices.Clone(s.Queues), func(q look.Queue) bool { return q.Error != "" })
	each := func(name, kind, help string, f func(q look.Queue)) {
		m.family(name, kind, help)
		for _, q := range readable {
			f(q)
		}
	}
	each("taskqueue_tasks", "gauge", "How many tasks there are, by state.", func(q look.Queue) {
		for st := taskqueue.StateScheduled; st <= taskqueue.StateWaiting; st++ {
			m.value(float64(q.States[st]), "queue", q.Name, "state", st.String())
		}
	})
	each("taskqueue_events_total", "counter", "What has happened since the queue was made.", func(q look.Queue) {
		for _, c := range slices.Sorted(maps.Keys(q.Counts)) {
			m.value(float64(q.Counts[c]), "queue", q.Name, "event", string(c))
		}
	})
	for _, g := range gauges {
		each(g.name, "gauge", g.help, func(q look.Queue) { m.value(g.of(q), "queue", q.Name) })
	}
	m.kinds(s)
	m.family("taskqueue_periodic_last_tick_timestamp_seconds", "gauge", "The last tick of a periodic job.")
	for _, p := range s.Periodic {
		if !p.Last.IsZero() {
			m.value(float64(p.Last.UnixMicro())/1e6, "queue", p.Queue, "job", p.Name)
		}
	}
	return m.Bytes()
}

// gauges have one value for each queue.
var gauges = []struct {
	name, help string
	of         func(q look.Queue) float64
}{
	{"taskqueue_late_seconds", "How late the task is that waits longest.",
		func(q look.Queue) float64 { return q.LateSeconds }},
	{"taskqueue_paused", "Whether the queue is paused.",
		func(q look.Queue) float64 { return number(q.Settings.Paused) }},
	{"taskqueue_concurrency_limit", "How many tasks may run at a time; 0: no limit.",
		func(q look.Queue) float64 { return float64(q.Settings.Concurrency) }},
	{"taskqueue_rate_limit", "How many tasks may start a second; 0: no limit.",
		func(q look.Queue) float64 { return q.Settings.Rate }},
	{"taskqueue_limited_tasks", "How many ready tasks a limit of their key or type keeps.",
		func(q look.Queue) float64 { return float64(q.Limited) }},
}

// kinds writes the figures of the types, those since each is known.
func (e *exposition) kinds(s *look.Snapshot) {
	known := slices.DeleteFunc(slices.Clone(s.Kinds), func(k look.Kind) bool { return k.Total == nil })
	e.family("taskqueue_kind_runs_total", "counter", "Runs by how they have ended.")
	for _, k := range known {
		e.value(float64(k.Total.Done), "queue", k.Queue, "kind", k.Type, "end", "done")
		e.value(float64(k.Total.Failed), "queue", k.Queue, "kind", k.Type, "end", "failed")
	}
	e.family("taskqueue_kind_late_seconds", "histogram", "How late runs have begun.")
	for _, k := range known {
		e.histogram(&k.Total.Late, "queue", k.Queue, "kind", k.Type)
	}
	e.family("taskqueue_kind_run_seconds", "histogram", "How long runs have lasted.")
	for _, k := range known {
		e.histogram(&k.Total.Took, "queue", k.Queue, "kind", k.Type)
	}
}

// histogram writes the metrics of one.
func (e *exposition) histogram(s *sums.Spread, labels ...string) {
	name, n := e.name, int64(0)
	for class, some := range s.By {
		n += some
		bound := "+Inf"
		if most := sums.Bound(class); most > 0 {
			bound = fmt.Sprint(most.Seconds())
		}
		e.name = name + "_bucket"
		e.value(float64(n), append(slices.Clone(labels), "le", bound)...)
	}
	e.name = name + "_sum"
	e.value(s.Sum.Seconds(), labels...)
	e.name = name + "_count"
	e.value(float64(n), labels...)
	e.name = name
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// An exposition is metrics as text.
type exposition struct {
	bytes.Buffer
	name string // of the family
}

// family begins the metrics of one name.
func (e *exposition) family(name, kind, help string) {
	e.name = name
	_, _ = fmt.Fprintf(e, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// value writes one metric of the family. labels are names and values.
func (e *exposition) value(v float64, labels ...string) {
	e.WriteString(e.name)
	for i := 0; i < len(labels); i += 2 {
		open := ","
		if i == 0 {
			open = "{"
		}
		_, _ = fmt.Fprintf(e, `%s%s="%s"`, open, labels[i], labelEscapes.Replace(labels[i+1]))
	}
	if len(labels) > 0 {
		e.WriteString("}")
	}
	_, _ = fmt.Fprintf(e, " %v\n", v)
}
