package pagetest

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
)

// parsed reads metrics with the parser of Prometheus.
func parsed(t *testing.T, text string, header http.Header) map[string]*dto.MetricFamily {
	t.Helper()
	assert.Equal(t, expfmt.TypeTextPlain, expfmt.ResponseFormat(header).FormatType())
	p := expfmt.NewTextParser(model.UTF8Validation)
	all, err := p.TextToMetricFamilies(strings.NewReader(text))
	require.NoError(t, err, "%s", text)
	for name, family := range all {
		assert.NotEmpty(t, family.GetHelp(), name)
		assert.Equal(t, strings.HasSuffix(name, "_total"), family.GetType() == dto.MetricType_COUNTER, name)
	}
	return all
}

// value returns the one metric of a family that has these labels: names and values.
func value(t *testing.T, all map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	t.Helper()
	require.Contains(t, all, name)
	for _, m := range all[name].GetMetric() {
		has := map[string]string{}
		for _, l := range m.GetLabel() {
			has[l.GetName()] = l.GetValue()
		}
		is := len(has) == len(labels)/2
		for i := 0; i < len(labels); i += 2 {
			is = is && has[labels[i]] == labels[i+1]
		}
		if is && m.GetCounter() != nil {
			return m.GetCounter().GetValue()
		}
		if is {
			return m.GetGauge().GetValue()
		}
	}
	t.Fatalf("%s has no metric with %q", name, labels)
	return 0
}

func TestMetricsAreThoseOfPrometheus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		name := "q" + hostile
		fill(t, s, name, hostile)
		fill(t, s, "mail", "")
		_, text, header := get(s, "/metrics")
		all := parsed(t, text, header)
		assert.EqualValues(t, 1, value(t, all, "taskqueue_up"))
		for _, q := range []string{name, "mail"} {
			assert.EqualValues(t, 1, value(t, all, "taskqueue_queue_up", "queue", q))
			for state, n := range map[string]float64{"scheduled": 1, "ready": 0, "running": 2, "retrying": 3, "done": 4, "dead": 2, "cancelled": 0} {
				assert.Equal(t, n, value(t, all, "taskqueue_tasks", "queue", q, "state", state), "%s", state)
			}
			assert.EqualValues(t, 4, value(t, all, "taskqueue_events_total", "queue", q, "event", "done"))
			assert.EqualValues(t, 5, value(t, all, "taskqueue_events_total", "queue", q, "event", "failed"), "dead letters have failed, too")
			assert.EqualValues(t, 1, value(t, all, "taskqueue_paused", "queue", q))
			assert.EqualValues(t, 7, value(t, all, "taskqueue_concurrency_limit", "queue", q))
			assert.EqualValues(t, 2.5, value(t, all, "taskqueue_rate_limit", "queue", q))
			assert.EqualValues(t, 0, value(t, all, "taskqueue_late_seconds", "queue", q))
		}
		assert.Greater(t, value(t, all, "taskqueue_periodic_last_tick_timestamp_seconds", "queue", name, "job", "nightly"+hostile), 9e8) // of the year 2000, in a bubble
	})
}

func TestAJobThatHasNeverTickedHasNoLastTick(t *testing.T) {
	s := open(t)
	_, err := s.Tick(ctx, taskqueue.Tick{Queue: "mail", Name: "yearly", Schedule: "@yearly", Defined: time.Now()})
	require.NoError(t, err)
	require.NoError(t, s.SetLimit(ctx, "mail", taskqueue.Limit{Key: "k", Concurrency: 1})) // there is such a queue
	_, text, _ := get(s, "/metrics")
	assert.Contains(t, text, `taskqueue_queue_up{queue="mail"} 1`)
	assert.NotContains(t, text, "taskqueue_periodic_last_tick_timestamp_seconds{")
}

func TestMetricsOfAStoreThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		fill(t, s, "mail", "")
		s.down.Store(true)
		status, text, header := get(s, "/metrics")
		assert.Equal(t, http.StatusOK, status, "Prometheus would take down what it cannot read")
		all := parsed(t, text, header)
		assert.EqualValues(t, 0, value(t, all, "taskqueue_up"))
		assert.Len(t, all, 1, "nothing of the past")
	})
}

func TestMetricsOfAnEmptyStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, text, header := get(open(t), "/metrics")
		all := parsed(t, text, header)
		assert.EqualValues(t, 1, value(t, all, "taskqueue_up"))
	})
}
