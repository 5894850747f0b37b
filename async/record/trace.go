package record

import (
	"bufio"
	"container/heap"
	"encoding/json"
	"io"
	"time"

	"github.com/ambit-go/ambit/async/picture"
)

// This file is the time line, in the trace format of Chrome, which ui.perfetto.dev, Firefox and speedscope read, too.

// mostTraced is how many events a trace has: more make files that viewers do not open.
const mostTraced = 64 << 10

// WriteTrace writes the time line of what r has to w. See [Recording.WriteTrace].
func (r *Recorder) WriteTrace(w io.Writer) error { return r.Recording(nil).WriteTrace(w) }

// WriteTrace writes the time line to w: JSON in the trace format of Chrome, for ui.perfetto.dev.
//
//	err := recording.WriteTrace(file)
//
// # Details
//
// Each task is a bar. Bars of one lane are inside each other or follow each other; a task stands in the lane of its
// owner where it is inside that. The last 65,536 tasks are written.
func (r *Recording) WriteTrace(w io.Writer) error {
	last := *r
	last.Events = last.Events[max(0, len(last.Events)-mostTraced):]
	b := bufio.NewWriter(w)
	to := json.NewEncoder(b) // what w says is said by Flush, too
	_, _ = b.WriteString(`{"displayTimeUnit":"ms","traceEvents":[` + "\n")
	var l lanes
	first := last.began()
	for i, e := range last.byStart() {
		if i > 0 {
			_ = b.WriteByte(',')
		}
		began := e.Ended.Add(-e.Took)
		_ = to.Encode(bar{
			Name: e.Task, Kind: "X", Process: 1, Lane: l.of(e), At: micros(began.Sub(first)), Took: micros(e.Took),
			Color: colors[e.Outcome], Args: barArgs{e.ID, e.Owner, e.Outcome, e.Cause},
		})
	}
	_, _ = b.WriteString("]}\n")
	return b.Flush()
}

// began returns when the first event began.
func (r *Recording) began() (first time.Time) {
	for i := range r.Events {
		if at := r.Events[i].Ended.Add(-r.Events[i].Took); i == 0 || at.Before(first) {
			first = at
		}
	}
	return first
}

type bar struct {
	Name    string  `json:"name"`
	Kind    string  `json:"ph"`
	Process int     `json:"pid"`
	Lane    int     `json:"tid"`
	At      float64 `json:"ts"`
	Took    float64 `json:"dur"`
	Color   string  `json:"cname"`
	Args    barArgs `json:"args"`
}

type barArgs struct {
	ID      picture.ID `json:"id"`
	Owner   picture.ID `json:"owner,omitzero"`
	Outcome string     `json:"outcome"`
	Cause   string     `json:"cause,omitempty"`
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// colors are names that Chrome has for colours.
var colors = map[string]string{
	"ok": "good", "cancelled": "grey", "skipped": "grey", "error": "bad", "timeout": "bad", "watchdog": "bad",
	"panic": "terrible", "goexit": "terrible",
}

// lanes gives tasks lanes in which they nest. They come in the order of their starts.
type lanes struct {
	open []([]time.Time)    // by lane: when what is under way there ends, the innermost last
	free byEnd              // when lanes become free; of one that was taken since, the entry says too little
	at   map[picture.ID]int // the lane of each task
}

// of returns the lane of e: that of its owner if e is inside all that is under way there, else the one that is free
// for the longest time, else a new one.
func (l *lanes) of(e *Event) int {
	if l.at == nil {
		l.at = make(map[picture.ID]int)
	}
	began := e.Ended.Add(-e.Took)
	if lane, ok := l.at[e.Owner]; ok && l.fits(lane, began, e.Ended, true) {
		return l.put(lane, e)
	}
	for len(l.free) > 0 && !l.free[0].at.After(began) {
		if lane := heap.Pop(&l.free).(laneEnd).lane; l.fits(lane, began, e.Ended, false) {
			return l.put(lane, e)
		}
	}
	l.open = append(l.open, nil)
	return l.put(len(l.open)-1, e)
}

// fits reports whether a task fits into a lane: nothing is under way there then, or, if nested, it ends within all
// that is.
func (l *lanes) fits(lane int, began, ended time.Time, nested bool) bool {
	in := l.open[lane]
	for len(in) > 0 && !in[len(in)-1].After(began) {
		in = in[:len(in)-1]
	}
	l.open[lane] = in
	return len(in) == 0 || nested && !in[len(in)-1].Before(ended)
}

func (l *lanes) put(lane int, e *Event) int {
	if len(l.open[lane]) == 0 { // e is the outermost: the lane is free when it ends
		heap.Push(&l.free, laneEnd{e.Ended, lane})
	}
	l.open[lane] = append(l.open[lane], e.Ended)
	l.at[e.ID] = lane
	return lane
}

// A laneEnd is when what is under way in a lane has ended.
type laneEnd struct {
	at   time.Time
	lane int
}

// byEnd is a heap with the first end first.
type byEnd []laneEnd

func (h byEnd) Len() int           { return len(h) }
func (h byEnd) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h byEnd) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byEnd) Push(x any)        { *h = append(*h, x.(laneEnd)) }

// Pop removes the last entry: see [heap.Pop].
func (h *byEnd) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
