package locks

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
)

// Metrics count what a manager does, for Prometheus: give its Observe to [Observe], and have
// it serve a path such as /metrics. The names are those of db-locks, behind a prefix, and some
// more:
//
//	requests_total{method,status}                       acquire, release, renew
//	requests_duration_seconds{method,status}            a histogram; acquire: with the wait, release: how long it was held
//	acquire_retry_wait_total                            calls that had to wait
//	lost_total{reason}                                  leases that were lost
//	held                                                locks that are held
//
// One Metrics may observe several managers. It is made by [NewMetrics].
type Metrics struct {
	prefix string

	mu       sync.Mutex
	requests map[request]*histogram
	lost     map[LossReason]int64
	waits    int64
	held     int64
}

type request struct{ method, status string }

// A histogram counts durations in seconds; the last bucket has those that are greater than
// all bounds.
type histogram struct {
	buckets [len(bounds) + 1]int64
	sum     float64
	count   int64
}

// bounds are those that Prometheus clients have by default.
var bounds = [...]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// NewMetrics returns metrics whose names begin with prefix; "" is "locks_".
func NewMetrics(prefix string) *Metrics {
	return &Metrics{prefix: cmp.Or(prefix, "locks_"), requests: map[request]*histogram{}, lost: map[LossReason]int64{}}
}

// Observe counts an event. It is what [Observe] takes.
func (m *Metrics) Observe(e Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch e.Kind {
	case EventGranted:
		m.held++
		m.countLocked("acquire", "ok", e.Took.Seconds())
	case EventNotGranted:
		m.countLocked("acquire", status(e.Err), e.Took.Seconds())
	case EventWaiting:
		m.waits++
	case EventEnded:
		m.held--
	case EventReleased:
		m.countLocked("release", status(e.Err), e.Took.Seconds())
	case EventRenewed:
		m.countLocked("renew", "ok", e.Took.Seconds())
	case EventRenewFailed:
		m.countLocked("renew", status(e.Err), e.Took.Seconds())
	case EventLost:
		if lost := (*LostError)(nil); errors.As(e.Err, &lost) {
			m.lost[lost.Reason]++
		}
	}
}

func (m *Metrics) countLocked(method, status string, seconds float64) {
	h := m.requests[request{method, status}]
	if h == nil {
		h = new(histogram)
		m.requests[request{method, status}] = h
	}
	i, _ := slices.BinarySearch(bounds[:], seconds)
	h.buckets[i]++
	h.sum += seconds
	h.count++
}

// status is the sort of an error, as a label: there are few, so the number of series is
// bounded.
func status(err error) string {
	for _, s := range []struct {
		err  error
		name string
	}{
		{nil, "ok"}, {ErrNotGranted, "not_granted"}, {ErrUnavailable, "unavailable"}, {ErrConflict, "conflict"},
		{ErrNotFound, "not_found"}, {ErrNotOwner, "not_owner"}, {ErrClosed, "closed"},
	} {
		if errors.Is(err, s.err) {
			return s.name
		}
	}
	return "error"
}

// WriteTo writes all of them in the text format of Prometheus.
func (m *Metrics) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	m.mu.Lock()
	m.writeLocked(&b)
	m.mu.Unlock()
	return b.WriteTo(w)
}

// ServeHTTP is [Metrics.WriteTo] as a handler.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = m.WriteTo(w) // a reader that goes away is no fault
}

func (m *Metrics) writeLocked(b *bytes.Buffer) {
	all := make([]request, 0, len(m.requests))
	for r := range m.requests {
		all = append(all, r)
	}
	slices.SortFunc(all, func(x, y request) int {
		return cmp.Or(cmp.Compare(x.method, y.method), cmp.Compare(x.status, y.status))
	})
	m.head(b, "requests_total", "counter", "What was asked of the store, by what became of it.")
	for _, r := range all {
		fmt.Fprintf(b, "%srequests_total{method=%q,status=%q} %d\n", m.prefix, r.method, r.status, m.requests[r].count)
	}
	m.head(b, "requests_duration_seconds", "histogram", "How long it took; of acquire with the wait, of release how long the lock was held.")
	for _, r := range all {
		m.histogram(b, r, m.requests[r])
	}
	m.head(b, "acquire_retry_wait_total", "counter", "Calls that had to wait for a lock.")
	fmt.Fprintf(b, "%sacquire_retry_wait_total %d\n", m.prefix, m.waits)
	m.head(b, "lost_total", "counter", "Leases that were lost.")
	for _, reason := range []LossReason{LostExpired, LostStolen, LostUnreachable, LostRevoked, LostStalled} {
		fmt.Fprintf(b, "%slost_total{reason=%q} %d\n", m.prefix, reason, m.lost[reason])
	}
	m.head(b, "held", "gauge", "Locks that are held.")
	fmt.Fprintf(b, "%sheld %d\n", m.prefix, m.held)
}

func (m *Metrics) head(b *bytes.Buffer, name, kind, help string) {
	fmt.Fprintf(b, "# HELP %s%s %s\n# TYPE %[1]s%[2]s %[4]s\n", m.prefix, name, help, kind)
}

func (m *Metrics) histogram(b *bytes.Buffer, r request, h *histogram) {
	name := m.prefix + "requests_duration_seconds"
	n := int64(0)
	for i, count := range h.buckets {
		le := "+Inf"
		if n += count; i < len(bounds) {
			le = fmt.Sprint(bounds[i])
		}
		fmt.Fprintf(b, "%s_bucket{method=%q,status=%q,le=%q} %d\n", name, r.method, r.status, le, n)
	}
	fmt.Fprintf(b, "%s_sum{method=%q,status=%q} %v\n", name, r.method, r.status, h.sum)
	fmt.Fprintf(b, "%s_count{method=%q,status=%q} %d\n", name, r.method, r.status, h.count)
}
