package measure

import (
	"fmt"
	"math"
	"strings"
)

// A Row is a piece of work as ours does it, beside one peer or alone, and the budget for it.
type Row struct {
	ID     string  `json:"id"` // of the budget: B1
	What   string  `json:"what"`
	Peer   string  `json:"peer,omitempty"`
	Unit   string  `json:"unit"` // of Ours and Theirs: ns, B, /s, allocations
	Ours   Sample  `json:"ours"`
	Theirs Sample  `json:"theirs,omitempty"`
	Ratio  bool    `json:"ratio,omitempty"` // the budget is about Ours / Theirs, else about Ours
	Budget Budget  `json:"budget"`
	Once   bool    `json:"once,omitempty"` // a single measurement of what another would find different
	Memory *Memory `json:"memory,omitempty"`
}

// Memory is what a unit allocates.
type Memory struct {
	Allocs, Bytes         float64
	PeerAllocs, PeerBytes float64
	Beside                bool // the peer's were counted, too
}

// Value returns what the budget is about.
func (r Row) Value() Sample {
	if r.Ratio {
		return Ratios(r.Ours, r.Theirs)
	}
	return r.Ours
}

// Verdict says whether the budget is kept.
func (r Row) Verdict() Verdict {
	if r.Budget.Set && (r.Once || r.Ratio && len(r.Ours) == 1) {
		return Single
	}
	return r.Budget.Judge(r.Value(), r.slack())
}

// MedianOver reports whether the median misses the budget, with or without a verdict.
func (r Row) MedianOver() bool {
	return r.Budget.Judge(Sample{r.Value().Median()}, r.slack()) == Over
}

// slack is what is lost to rounding.
func (r Row) slack() float64 {
	switch {
	case r.Unit == "allocations": // the runtime makes some beside
		return 0.055
	case !r.Ratio && math.Abs(r.Budget.Limit) >= 10:
		return 0.5
	}
	return 0.005
}

// Measured is the value with its interval, as it is printed.
func (r Row) Measured() string {
	v, unit := r.Value(), r.Unit
	if r.Ratio {
		unit = "×"
	}
	low, high := v.Interval()
	if len(v) < 2 || low == high {
		return amount(v.Median(), unit)
	}
	return fmt.Sprintf("%s (%s–%s)", amount(v.Median(), unit), amount(low, ""), amount(high, ""))
}

// Bound is the budget, as it is printed.
func (r Row) Bound() string {
	if !r.Budget.Set {
		return ""
	}
	sign, unit := "≤", r.Unit
	if r.Budget.AtLeast {
		sign = "≥"
	}
	if r.Ratio {
		unit = "×"
	}
	return sign + " " + amount(r.Budget.Limit, unit)
}

// Amounts returns the medians of ours and of the peer, with the unit.
func (r Row) Amounts() (ours, theirs string) {
	ours = amount(r.Ours.Median(), r.Unit)
	if len(r.Theirs) > 0 {
		theirs = amount(r.Theirs.Median(), r.Unit)
	}
	return ours, theirs
}

// amount prints a number with three digits or more, and its unit.
func amount(v float64, unit string) string {
	text := ""
	switch {
	case math.Abs(v) >= 100:
		text = fmt.Sprintf("%.0f", v)
	case math.Abs(v) >= 10:
		text = fmt.Sprintf("%.1f", v)
	default:
		text = fmt.Sprintf("%.2f", v)
	}
	return strings.TrimSpace(text + " " + unit)
}
