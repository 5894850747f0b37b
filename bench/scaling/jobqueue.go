package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/bench/internal/measure"
	"github.com/ambit-go/ambit/jobqueue"
)

func jobqueueCurves() []curve {
	return []curve{
		{ID: "S9", group: "jobqueue", what: "Add by several producers, one consumer", axis: "producers", at: few, with: fixed(func(n, units int) { consume(n, 1, units, nothing) })},
		{ID: "S10", group: "jobqueue", what: "Consume, one producer, empty jobs", axis: "consumers", at: few, with: fixed(func(n, units int) { consume(1, n, units, nothing) })},
		{ID: "S11", group: "jobqueue", what: "Consume, one producer, jobs that wait for 1 ms", axis: "consumers", at: many, waits: true, with: fixed(func(n, units int) { consume(1, n, units, wait) })},
		{ID: "S12", group: "jobqueue", what: "as many producers and consumers, empty jobs", axis: "processors", at: processors(), with: onProcessors(func(n, units int) { consume(n, n, units, nothing) })},
	}
}

// consume has producers add units jobs in all, and consumers do them.
func consume(producers, consumers, units int, f func(context.Context) error) {
	q := jobqueue.New[int64]()
	var next, done atomic.Int64
	var all sync.WaitGroup
	all.Go(func() {
		must(q.Consume(context.Background(), consumers, 1, func(ctx context.Context, _ []int64) error {
			err := f(ctx)
			if done.Add(1) == int64(units) {
				q.Close()
			}
			return err
		}))
	})
	share(producers, units, func(units int) {
		for range units {
			q.Add(next.Add(1))
		}
	})
	all.Wait()
}

// A stay is when a job came, when it was begun, and when it had ended.
type stay struct{ came, begun, ended time.Time }

// waitAt has jobs come at random to one consumer that is busy for a share load of the time, and says how long they wait. Both
// the time between two arrivals and that of a job are exponential.
func waitAt(load float64, jobs int) measure.Queue {
	const service = 3 * time.Millisecond
	stays := make([]stay, jobs)
	q := jobqueue.New[int]()
	var all sync.WaitGroup
	all.Go(func() {
		must(q.Consume(context.Background(), 1, 1, func(_ context.Context, job []int) error {
			s := &stays[job[0]]
			s.begun = time.Now()
			time.Sleep(time.Duration(rand.ExpFloat64() * float64(service)))
			s.ended = time.Now()
			if job[0] == jobs-1 {
				q.Close()
			}
			return nil
		}))
	})
	due := time.Now()
	for i := range stays {
		due = due.Add(time.Duration(rand.ExpFloat64() * float64(service) / load))
		time.Sleep(time.Until(due))
		stays[i].came = time.Now()
		q.Add(i)
	}
	all.Wait()
	return kingman(stays)
}

// kingman returns what was measured, and what Kingman's formula says of it: jobs wait about
//
//	load / (1 - load) × (ca² + cs²) / 2 × service
//
// with the squared coefficients of variation of the times between arrivals and of the services.
func kingman(stays []stay) measure.Queue {
	var between, services, waits []float64
	for i, s := range stays {
		if i > 0 {
			between = append(between, float64(s.came.Sub(stays[i-1].came)))
		}
		services = append(services, float64(s.ended.Sub(s.begun)))
		waits = append(waits, float64(s.begun.Sub(s.came)))
	}
	gap, ca := moments(between)
	service, cs := moments(services)
	waited, _ := moments(waits)
	load := service / gap
	return measure.Queue{
		ID: "S20", Jobs: len(stays), Load: load, Service: service, Arrivals: ca, Services: cs,
		Waited: waited, Kingman: load / (1 - load) * (ca + cs) / 2 * service,
	}
}

// moments returns the mean and the squared coefficient of variation.
func moments(all []float64) (mean, variation float64) {
	for _, v := range all {
		mean += v / float64(len(all))
	}
	for _, v := range all {
		variation += (v - mean) * (v - mean) / float64(len(all))
	}
	return mean, variation / (mean * mean)
}
