package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ambit-go/ambit/cirunner/internal/board"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
)

// marks stand before jobs: their shape is enough.
var marks = map[plan.State]string{
	plan.Running: "●", plan.Succeeded: "✓", plan.Failed: "✗", plan.Warned: "!",
	plan.Canceled: "■", plan.Skipped: "-", plan.Manual: "▸", plan.Blocked: "▸", plan.Waiting: "·", plan.Delayed: "·", plan.Locked: "·", plan.Ready: "·",
}

// Open reports whether the job is what a reader looks for: it has failed, and may
// not. Its part of the page is unfolded.
func (v jobView) Open() bool { return v.State == plan.Failed }

// A timeline is the time of the run.
type timeline struct{ begin, end time.Time }

func newTimeline(begin time.Time, took time.Duration) timeline {
	return timeline{begin, begin.Add(max(took, time.Millisecond))}
}

// A bar is a part of the time line, in percent of it.
type bar struct {
	Class, Title string
	Left, Width  float64
}

// at returns where a time is, in percent. It is within the line whatever the clock
// has done meanwhile.
func (l timeline) at(t time.Time) float64 {
	x := 100 * float64(t.Sub(l.begin)) / float64(l.end.Sub(l.begin))
	return math.Round(min(max(x, 0), 100)*1000) / 1000
}

// bars returns the bars of an attempt, one for each phase.
func (l timeline) bars(class string, begin, end time.Time, phases []board.Phase) []bar {
	if len(phases) == 0 {
		phases = []board.Phase{{Name: "script", Begin: begin}}
	}
	var all []bar
	for k, p := range phases {
		until := end
		if k+1 < len(phases) {
			until = phases[k+1].Begin
		}
		kind := class
		if p.Name != "script" {
			kind += " aside"
		}
		left := l.at(p.Begin)
		all = append(all, bar{
			Class: kind, Left: left, Width: math.Round((l.at(until)-left)*1000) / 1000,
			Title: fmt.Sprintf("%s: %s", p.Name, Duration(until.Sub(p.Begin))),
		})
	}
	return all
}

// waiting returns the bar of the time that a job has waited for room before its first attempt, if it was long
// enough to be told.
func (l timeline) waiting(j board.Job) []bar {
	first := j.Begin
	if len(j.Past) > 0 {
		first = j.Past[0].Begin
	}
	if j.Ready.IsZero() || first.Sub(j.Ready) < told {
		return nil
	}
	left := l.at(j.Ready)
	return []bar{{
		Class: "wait", Left: left, Width: math.Round((l.at(first)-left)*1000) / 1000,
		Title: "waiting for room: " + Duration(first.Sub(j.Ready)),
	}}
}

// told is how long a job must have waited for that to be told.
const told = time.Second

// A tick is a time that the axis names.
type tick struct {
	Left float64
	Text string
}

// steps are the distances of ticks that people can count in.
var steps = []time.Duration{
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day,
}

const day = 24 * time.Hour

// round returns a time that has no odd parts, without those: 90s is 1m30s, 2m and 1h are that.
func round(d time.Duration) string {
	text := Duration(d)
	switch {
	case d%day == 0:
		return fmt.Sprintf("%dd", d/day)
	case d < 10*time.Second && d%time.Second == 0:
		return fmt.Sprintf("%ds", d/time.Second)
	case d >= time.Minute && d%time.Minute == 0:
		text = strings.TrimSuffix(text, "00s")
	}
	if d >= time.Hour && d%time.Hour == 0 {
		text = strings.TrimSuffix(text, "00m")
	}
	return text
}

// ticks returns at most six of them, and the beginning.
func (l timeline) ticks() []tick {
	took := l.end.Sub(l.begin)
	step := steps[len(steps)-1]
	for _, s := range steps {
		if took <= 6*s {
			step = s
			break
		}
	}
	if days := took / 6 / day; days > 0 {
		step = (days + 1) * day
	}
	all := []tick{{0, "0"}}
	for d := step; d < took*95/100; d += step {
		all = append(all, tick{l.at(l.begin.Add(d)), round(d)})
	}
	return all
}
