package page

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// The size of a chart, and of the room for what stands at its axes.
const (
	chartWidth, chartHeight   = 400, 200
	left, right, above, below = 58, 8, 10, 24
)

// A chart is some lines over time, with axes.
type chart struct {
	Title string
	Says  string // what it shows, in words
	Lines []line
	X, Y  []tick
}

// A line is one of a chart.
type line struct{ Class, Name, Path string }

// A tick is a mark at an axis, with its text.
type tick struct {
	At   float64
	Text string
}

// A series is the values of a line at equal distances; none is a gap.
type series struct {
	class, name string
	values      []float64
}

// An axis is that of the time.
type axis struct {
	from, to time.Time
	every    time.Duration
	form     string
}

func draw(title string, x axis, words func(float64) string, all ...series) chart {
	c := chart{Title: title}
	top := 0.0
	var says []string
	for _, s := range all {
		last, highest := float64(none), float64(none)
		for _, v := range s.values {
			if v != none {
				last, highest = v, max(highest, v)
			}
		}
		top = max(top, highest)
		if last != none {
			says = append(says, fmt.Sprintf("%s: last %s, at most %s", s.name, words(last), words(highest)))
		}
	}
	c.Says = title + ", from " + x.from.UTC().Format(time.RFC3339) + ". " + strings.Join(says, "; ")
	every := niceStep(top)
	top = max(math.Ceil(top/every), 1) * every
	y := func(v float64) float64 { return above + (chartHeight-above-below)*(1-v/top) }
	for v := 0.0; v <= top+every/2; v += every {
		c.Y = append(c.Y, tick{math.Round(y(v)), words(v)})
	}
	width, total := float64(chartWidth-left-right), x.to.Sub(x.from).Seconds()
	for t := x.from.UTC().Truncate(x.every).Add(x.every); !t.After(x.to); t = t.Add(x.every) {
		c.X = append(c.X, tick{math.Round(left + width*t.Sub(x.from).Seconds()/total), t.Format(x.form)})
	}
	for _, s := range all {
		c.Lines = append(c.Lines, line{s.class, s.name, path(s.values, width, y)})
	}
	return c
}

// path is the line through values. A value alone is a ring.
func path(values []float64, width float64, y func(float64) float64) string {
	var b strings.Builder
	for i, v := range values {
		if v == none {
			continue
		}
		x := left + width*float64(i)/float64(max(len(values)-1, 1))
		before, behind := i > 0 && values[i-1] != none, i+1 < len(values) && values[i+1] != none
		switch {
		case before:
			_, _ = fmt.Fprintf(&b, "L%.1f %.1f", x, y(v))
		case behind:
			_, _ = fmt.Fprintf(&b, "M%.1f %.1f", x, y(v))
		default:
			_, _ = fmt.Fprintf(&b, "M%.1f %.1fa2 2 0 1 0 4 0a2 2 0 1 0 -4 0", x-2, y(v))
		}
	}
	return b.String()
}

// niceStep is 1, 2 or 5 times a power of ten, with which an axis up to top has three to five ticks.
func niceStep(top float64) float64 {
	if top <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(top/3)))
	for _, n := range []float64{1, 2, 5} {
		if top/(n*power) <= 5 {
			return n * power
		}
	}
	return 10 * power
}
