package main

import (
	"context"

	"github.com/ambit-go/ambit/scheduler"
)

func schedulerCurves() []curve {
	return []curve{
		{ID: "S6", group: "scheduler", what: "Post by several producers to one worker", axis: "producers", at: few, with: fixed(postToOne)},
		{ID: "S7", group: "scheduler", what: "Post, a worker for each producer", axis: "workers", at: few, with: fixed(postToEach)},
		{ID: "S8", group: "scheduler", what: "Post, as many producers, each with a worker", axis: "processors", at: processors(), with: onProcessors(postToEach)},
	}
}

func postToOne(n, units int) {
	w := scheduler.New(scheduler.Goroutines()).NewWorker(context.Background())
	share(n, units, func(units int) {
		for range units {
			must(w.Post(func() {}))
		}
	})
	must(w.Drain(context.Background()))
}

func postToEach(n, units int) {
	s := scheduler.New(scheduler.Goroutines())
	share(n, units, func(units int) {
		w := s.NewWorker(context.Background())
		for range units {
			must(w.Post(func() {}))
		}
		must(w.Drain(context.Background()))
	})
}
