package otelambit

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/picture"
)

// gauges show a Snapshot.
type gauges struct {
	active, queued               metric.Int64ObservableGauge
	stragglers, rings, detached  metric.Int64ObservableGauge
	slots, held, waiting, worker metric.Int64ObservableGauge
}

func (g *gauges) open(t *Telemetry, meter metric.Meter, to *metric.Registration) error {
	var all []metric.Observable
	var errs []error
	for _, one := range []struct {
		to               *metric.Int64ObservableGauge
		name, unit, text string
	}{
		{&g.active, "ambit.task.active", "{task}", "Tasks whose handler has begun and that have not ended."},
		{&g.queued, "ambit.task.queued", "{task}", "Tasks whose handler has not begun."},
		{&g.stragglers, "ambit.scope.stragglers", "{task}", "Tasks that were told to stop and are still there."},
		{&g.rings, "ambit.rings", "{ring}", "Rings of tasks that wait for each other."},
		{&g.detached, "ambit.detached", "{task}", "Detached tasks."},
		{&g.slots, "ambit.limit.slots", "{slot}", "Slots of a Limit."},
		{&g.held, "ambit.limit.held", "{slot}", "Slots of a Limit that are held."},
		{&g.waiting, "ambit.limit.queued", "{task}", "Tasks that queue for a slot of a Limit."},
		{&g.worker, "ambit.worker.queued", "{task}", "Tasks that queue in a worker."},
	} {
		gauge, err := meter.Int64ObservableGauge(one.name, metric.WithUnit(one.unit), metric.WithDescription(one.text))
		*one.to = gauge
		all, errs = append(all, gauge), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	registration, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		g.observe(t, async.Snapshot(t.look...), o)
		return nil
	}, all...)
	*to = registration
	return err
}

// A level is what is said of the tasks of one name.
type level struct{ active, queued, slots, held, waiting int64 }

func (g *gauges) observe(t *Telemetry, pic *picture.Tree, o metric.Observer) {
	levels := make(map[string]*level)
	detached := int64(0)
	add := func(name string, kind picture.Kind, state picture.State, n int) *level {
		name = t.names.of(name)
		l := levels[name]
		if l == nil {
			l = new(level)
			levels[name] = l
		}
		switch {
		case !runs(kind):
		case state == picture.StateQueued:
			l.queued += int64(n)
		default:
			l.active += int64(n)
		}
		if kind == picture.KindDetached {
			detached += int64(n)
		}
		return l
	}
	for i := range pic.Nodes {
		n := &pic.Nodes[i]
		l := add(n.Name, n.Kind, n.State, 1)
		if n.Limit != nil {
			l.slots += int64(n.Limit.Slots)
			l.held += int64(n.Limit.Held)
			l.waiting += int64(n.Limit.Queued)
		}
	}
	for _, group := range pic.Groups {
		add(group.Name, group.Kind, group.State, group.Count)
	}
	for name, l := range levels {
		g.level(name, l, o)
	}
	o.ObserveInt64(g.detached, detached)
	g.problems(pic, o)
	g.workers(t, pic, o)
}

func (g *gauges) level(name string, l *level, o metric.Observer) {
	of := named(name)
	o.ObserveInt64(g.active, l.active, of)
	o.ObserveInt64(g.queued, l.queued, of)
	if l.slots > 0 {
		o.ObserveInt64(g.slots, l.slots, of)
		o.ObserveInt64(g.held, l.held, of)
		o.ObserveInt64(g.waiting, l.waiting, of)
	}
}

func (g *gauges) problems(pic *picture.Tree, o metric.Observer) {
	stragglers := int64(0)
	for _, p := range pic.Problems {
		if p.Kind == picture.ProblemStraggler {
			stragglers++
		}
	}
	o.ObserveInt64(g.stragglers, stragglers)
	o.ObserveInt64(g.rings, int64(len(pic.Rings)))
}

func (g *gauges) workers(t *Telemetry, pic *picture.Tree, o metric.Observer) {
	queued := make(map[string]int64)
	for _, p := range pic.Parts {
		if p.Kind == "worker" {
			queued[t.names.of(p.Name)] += int64(p.Queued)
		}
	}
	for name, n := range queued {
		o.ObserveInt64(g.worker, n, metric.WithAttributes(attribute.String("ambit.part.name", name)))
	}
}

// runs reports whether what is of that kind has a handler.
func runs(kind picture.Kind) bool {
	switch kind {
	case picture.KindRoot, picture.KindLeft, picture.KindPromise, picture.KindChoice, picture.KindFork, picture.KindGroup:
		return false
	default:
		return true
	}
}
