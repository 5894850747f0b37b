package main

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"time"

	"github.com/ambit-go/ambit/taskqueue/cmd/taskq/internal/top"
	"github.com/ambit-go/ambit/taskqueue/internal/look"
)

func topCommand(f *flag.FlagSet) func(context.Context, *env) error {
	every := f.Duration("every", time.Second, "how often the picture is renewed; at least 1s")
	once := f.Bool("once", false, "print one picture as text, as it does where there is no terminal")
	return func(ctx context.Context, e *env) error {
		if *every < time.Second {
			return usagef("-every %v: the store is asked once a second at most", *every)
		}
		names, err := e.named(ctx)
		if err != nil {
			return err
		}
		if e.json {
			s, err := top.Pictures(ctx, look.Alone(e.store, names...))
			if err != nil {
				return err
			}
			return json.NewEncoder(e.stdout).Encode(s)
		}
		return top.Run(ctx, top.Config{Store: e.store, Name: storeName(e.url), Queues: names, Every: *every, Once: *once,
			In: os.Stdin, Out: os.Stdout, Env: os.Getenv})
	}
}
