package taskqueue

import (
	"context"
	"math"
	"strings"
)

// MaxLimits is how many limits of keys and types a queue has at most.
const MaxLimits = 1000

// A Limit bounds how many tasks of a LimitKey, or of a type, run in one queue, whichever worker runs
// them. Exactly one of Key and Type is set.
//
// A task is under one limit at most, the most specific: that of exactly its LimitKey, else that of the
// longest beginning of the LimitKey, else that of its type. Tasks of the same LimitKey are counted
// together, and tasks that are under the limit of their type.
type Limit struct {
	// Key is a LimitKey, or the beginning of LimitKeys and a star: with "tenant-*" each of those keys
	// has this limit for itself.
	Key string `json:"key,omitempty"`
	// Type is that of tasks without a LimitKey that has a limit.
	Type string `json:"type,omitempty"`

	Concurrency int     `json:"concurrency,omitempty"` // leases at a time; 0: no limit
	Rate        float64 `json:"rate,omitempty"`        // claims a second; 0: no limit
	Burst       int     `json:"burst,omitempty"`       // how many at once; at least 1 with a Rate
}

// Lifts reports whether l bounds nothing.
func (l *Limit) Lifts() bool { return l.Concurrency == 0 && l.Rate == 0 }

// SetLimit sets the limit of a LimitKey, of all LimitKeys that begin alike, or of a type, for all
// processes. It takes the place of the one for the same Key or Type before; without Concurrency and
// Rate there is none any more. A limit that is not valid changes nothing: the error is an
// [*InvalidError].
//
// It counts from the next claim on: no run is stopped, and a run counts for the limit that the task was
// under when it was claimed. Tasks that a limit keeps are ready, see [Info.Limited], and do not keep
// others from running. Each change has the store look at all such tasks of the queue again, up to
// MaxBatch with each claim.
func (q *Queue) SetLimit(ctx context.Context, l Limit) error {
	if err := CheckLimit(l); err != nil {
		return err
	}
	return q.store.SetLimit(ctx, q.name, l)
}

// CheckLimit checks what SetLimit is given.
func CheckLimit(l Limit) error {
	switch name, what := l.Key+l.Type, "Key"; {
	case (l.Key == "") == (l.Type == ""):
		return invalid("Limit", "set either Key, for tasks of a LimitKey, or Type, for tasks of a type")
	default:
		if l.Type != "" {
			what = "Type"
		}
		if err := CheckName(what, name); err != nil {
			return err
		}
	}
	switch {
	case l.Concurrency < 0:
		return invalid("Concurrency", "it is %d: it must be positive, or 0 for no limit; Pause stops the queue", l.Concurrency)
	case math.IsNaN(l.Rate) || math.IsInf(l.Rate, 0) || l.Rate < 0 || l.Rate > 0 && l.Rate < minRate:
		return invalid("Rate", "it is %v: it must be a number of claims a second, at least %v, or 0 for no limit", l.Rate, minRate)
	case l.Burst < 0:
		return invalid("Burst", "it is %d: it must be positive, or 0 for 1", l.Burst)
	case l.Burst > 0 && l.Rate == 0:
		return invalid("Burst", "it is %d without a Rate: set a Rate, or leave Burst out", l.Burst)
	}
	return nil
}

// checkLimitKey checks the LimitKey of a task.
func checkLimitKey(key string) error {
	if key == "" {
		return nil
	}
	if strings.HasSuffix(key, "*") {
		return invalid("LimitKey", "%q ends with a star, which stands for the end of other keys in a Limit: use another character", key)
	}
	return CheckName("LimitKey", key)
}
