package measure

// A Verdict says whether a budget is kept.
type Verdict int

// Verdicts.
const (
	NoBudget Verdict = iota // it is only good to know
	Within                  // the whole interval of the median keeps the budget
	Over                    // the whole interval misses it
	Unclear                 // the budget lies in the interval
	Single                  // it was measured once, so nothing is known of the spread
)

func (v Verdict) String() string {
	return [...]string{"", "within budget", "over", "no verdict: spread too wide", "no verdict: measured once"}[v]
}

// A Budget bounds a value; the zero Budget bounds nothing.
type Budget struct {
	Limit   float64 `json:"limit,omitempty"`
	AtLeast bool    `json:"atLeast,omitempty"` // the value is not to be below the limit; else not above it
	Set     bool    `json:"set,omitempty"`
}

// AtMost is a budget for what is better the smaller it is.
func AtMost(limit float64) Budget { return Budget{Limit: limit, Set: true} }

// AtLeast is a budget for what is better the larger it is.
func AtLeast(limit float64) Budget { return Budget{Limit: limit, AtLeast: true, Set: true} }

// Judge says whether a sample keeps the budget. Slack is what is lost to rounding: the last digit that
// is printed decides.
func (b Budget) Judge(s Sample, slack float64) Verdict {
	if !b.Set || len(s) == 0 {
		return NoBudget
	}
	low, high := s.Interval()
	if b.AtLeast {
		low, high = -high, -low
	}
	limit := b.Limit
	if b.AtLeast {
		limit = -limit
	}
	switch {
	case high <= limit+slack:
		return Within
	case low > limit+slack:
		return Over
	}
	return Unclear
}
