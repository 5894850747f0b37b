package locks

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
)

// Metrics count what managers do, for Prometheus: give its Observe to [Observe], and have it
// serve a path such as /metrics. The names are those of db-locks, behind a prefix. For
// histograms, and other systems, count the events with the client of that system.
//
//	requests_total, requests_duration_seconds_total {method,status}   acquire with the wait, release with the hold, renew
//	acquire_retry_wait_total, lost_total {reason}, held               waits, leases that were lost, locks that are held
type Metrics struct {
	prefix string
	mu     sync.Mutex
	values map[string]float64 // by the name of the series, without the prefix
}

// NewMetrics returns metrics whose names begin with prefix; "" is "locks_".
func NewMetrics(prefix string) *Metrics {
	values := map[string]float64{"acquire_retry_wait_total": 0, "held": 0}
	for _, reason := range []LossReason{LostExpired, LostStolen, LostUnreachable, LostRevoked, LostStalled} {
		values[fmt.Sprintf("lost_total{reason=%q}", reason)] = 0
	}
	return &Metrics{prefix: cmp.Or(prefix, "locks_"), values: values}
}

// methods are what events say of requests.
var methods = map[EventKind]string{
	EventGranted: "acquire", EventNotGranted: "acquire", EventReleased: "release",
	EventRenewed: "renew", EventRenewFailed: "renew",
}

// Observe counts an event. It is what [Observe] takes.
func (m *Metrics) Observe(e Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if method := methods[e.Kind]; method != "" {
		labels := fmt.Sprintf("{method=%q,status=%q}", method, status(e.Err))
		m.values["requests_total"+labels]++
		m.values["requests_duration_seconds_total"+labels] += e.Took.Seconds()
	}
	switch lost := (*LostError)(nil); {
	case e.Kind == EventWaiting:
		m.values["acquire_retry_wait_total"]++
	case e.Kind == EventGranted:
		m.values["held"]++
	case e.Kind == EventEnded:
		m.values["held"]--
	case e.Kind == EventLost && errors.As(e.Err, &lost):
		m.values[fmt.Sprintf("lost_total{reason=%q}", lost.Reason)]++
	}
}

// status is the sort of an error: there are few, so the number of series is bounded.
func status(err error) string {
	sorts := []error{nil, ErrNotGranted, ErrUnavailable, ErrConflict, ErrNotFound, ErrNotOwner, ErrClosed}
	names := []string{"ok", "not_granted", "unavailable", "conflict", "not_found", "not_owner", "closed", "error"}
	i := slices.IndexFunc(sorts, func(sort error) bool { return errors.Is(err, sort) })
	return names[(i+len(names))%len(names)] // -1: the last
}

// ServeHTTP writes all of them in the text format of Prometheus.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	m.mu.Lock()
	values := maps.Clone(m.values)
	m.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(values)) { // an error is of a reader that goes away, which is no fault
		_, _ = fmt.Fprintf(w, "%s%s %v\n", m.prefix, name, values[name])
	}
}
