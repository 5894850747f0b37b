//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/proc"
)

// A check finds out whether all is well.
type check func(ctx context.Context) error

// watched runs a command under the watchdogs that are asked for. They are nested:
// the outer one's bite is the inner one's cancellation, and the command sees the
// cause of whichever was first.
func (cfg *config) watched(ctx context.Context, c proc.Command) (result proc.Result, err error) {
	work := func(ctx context.Context) error {
		result, err = proc.Run(ctx, c, async.Timeout(cfg.timeout))
		return err
	}
	if cfg.health != "" {
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		work = cfg.watch(work, health(client, cfg.health, cfg.answer))
	}
	if cfg.beat != "" {
		work = cfg.watch(work, heartbeat(cfg.beat, cfg.stale, time.Now()))
	}
	if told := work(ctx); err == nil {
		err = told // of what was never run; else Run has said it all
	}
	return result, err
}

// watch puts a watchdog around work. Work is waited for until it has ended, also
// if ctx has: it ends because of that, and how is wanted.
func (cfg *config) watch(work func(context.Context) error, ok check) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := async.Watch(ctx, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, work(ctx)
		}, async.Every(cfg.every), ok, async.Tolerate(cfg.tolerate), async.Name("the command")).Wait(context.WithoutCancel(ctx))
		return err
	}
}

// health asks url. An answer that takes longer than limit is a bad one.
func health(client *http.Client, url string, limit time.Duration) check {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err != nil {
			return fmt.Errorf("health: %w", err)
		}
		defer func() { _ = answer.Body.Close() }()
		_, _ = io.CopyN(io.Discard, answer.Body, 64<<10) // so that the connection can be used again
		if answer.StatusCode < 200 || answer.StatusCode > 299 {
			return fmt.Errorf("health: %s: %.100q", url, answer.Status) // a terminal would take it for a command
		}
		return nil
	}
}

// heartbeat looks at the time of a file: it, or the start, must not be older
// than stale.
func heartbeat(file string, stale time.Duration, start time.Time) check {
	return func(context.Context) error {
		last := start
		switch info, err := os.Stat(file); {
		case errors.Is(err, fs.ErrNotExist): // not yet
		case err != nil:
			return fmt.Errorf("heartbeat: %w", err)
		case info.ModTime().After(start):
			last = info.ModTime()
		}
		if age := time.Since(last); age > stale {
			return fmt.Errorf("heartbeat: %s was not touched for %v", file, age.Round(time.Millisecond))
		}
		return nil
	}
}
