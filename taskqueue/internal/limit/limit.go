// Package limit finds the limit that a task is under, and says what it allows.
package limit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/taskqueue"
)

// A Set is the limits of a queue, as they are stored. Version is another one after each change.
type Set struct {
	Version int64             `json:"version"`
	Limits  []taskqueue.Limit `json:"limits"`

	keys, types map[string]*taskqueue.Limit
	beginnings  []*taskqueue.Limit // the longest first
}

// Parse reads what Text has written; nil if that is nothing.
func Parse(text string) (*Set, error) {
	if text == "" {
		return nil, nil
	}
	s := new(Set)
	if err := json.Unmarshal([]byte(text), s); err != nil {
		return nil, fmt.Errorf("taskqueue: the limits of a queue cannot be read: %w", err)
	}
	s.index()
	return s, nil
}

// Of returns a set of the given limits, without a version.
func Of(limits []taskqueue.Limit) *Set {
	s := &Set{Limits: limits}
	s.index()
	return s
}

func (s *Set) index() {
	s.keys, s.types = map[string]*taskqueue.Limit{}, map[string]*taskqueue.Limit{}
	for i := range s.Limits {
		switch l := &s.Limits[i]; {
		case l.Type != "":
			s.types[l.Type] = l
		case strings.HasSuffix(l.Key, "*"):
			s.beginnings = append(s.beginnings, l)
		default:
			s.keys[l.Key] = l
		}
	}
	slices.SortFunc(s.beginnings, func(a, b *taskqueue.Limit) int { return cmp.Compare(len(b.Key), len(a.Key)) })
}

// Changed returns the text of limits after a change. It is the same text if nothing has changed.
func Changed(text string, l taskqueue.Limit) (string, error) {
	s, err := Parse(text)
	if err != nil {
		return "", err
	}
	if s == nil {
		s = new(Set)
	}
	compare := func(a, b taskqueue.Limit) int { return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Key, b.Key)) }
	at, known := slices.BinarySearchFunc(s.Limits, l, compare)
	switch {
	case known && l.Lifts():
		s.Limits = slices.Delete(s.Limits, at, at+1)
	case known && s.Limits[at] == l, !known && l.Lifts():
		return text, nil
	case known:
		s.Limits[at] = l
	case len(s.Limits) >= taskqueue.MaxLimits:
		return "", &taskqueue.InvalidError{What: "Limit", Why: fmt.Sprintf("the queue has %d limits, which is the most: give keys names that begin alike, and those one limit", len(s.Limits))}
	default:
		s.Limits = slices.Insert(s.Limits, at, l)
	}
	s.Version++
	b, err := json.Marshal(s)
	return string(b), err
}

// Of returns the limit that a task is under, and the name of those who are counted with it; nil if
// there is none.
func (s *Set) Of(key, kind string) (group string, l *taskqueue.Limit) {
	if l := s.ofKey(key); l != nil {
		return "k" + key, l
	}
	return "t" + kind, s.types[kind]
}

func (s *Set) ofKey(key string) *taskqueue.Limit {
	if key == "" {
		return nil
	}
	if l := s.keys[key]; l != nil {
		return l
	}
	for _, l := range s.beginnings {
		if strings.HasPrefix(key, strings.TrimSuffix(l.Key, "*")) {
			return l
		}
	}
	return nil
}

// Group returns the limit of a group; nil if there is none any more.
func (s *Set) Group(name string) *taskqueue.Limit {
	if strings.HasPrefix(name, "t") {
		return s.types[name[1:]]
	}
	return s.ofKey(name[1:])
}

// Prefix is what the stored names of groups that wait begin with: what is less is of another version.
func (s *Set) Prefix() string { return fmt.Sprintf("%08x", s.Version) }

// Room returns how many tasks of a group may begin, of which some run; and when the rate lets
// one begin, 0 if it is not the rate that keeps it. fullAt is when the rate would be full again.
func Room(l *taskqueue.Limit, running int, fullAt, now float64) (n int, next float64) {
	n = math.MaxInt32
	if l.Concurrency > 0 {
		n = max(l.Concurrency-running, 0)
	}
	if l.Rate == 0 || n == 0 {
		return n, 0
	}
	span := 1e6 / l.Rate
	burst := float64(max(l.Burst, 1))
	used := min(max(fullAt-now, 0)/span, burst)
	allowed := math.Floor(burst - used + min(0.1, 2/span)) // two µs, since none is exact
	if allowed < 1 {
		return 0, math.Ceil(now + (used-burst+1)*span)
	}
	return int(min(float64(n), allowed)), 0
}

// Spent returns when the rate of l will be full again if one more task begins now.
func Spent(l *taskqueue.Limit, fullAt, now float64) float64 {
	span := 1e6 / l.Rate
	return min(max(fullAt, now), now+span*float64(max(l.Burst, 1)-1)) + span
}
