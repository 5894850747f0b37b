// Scenes plays what happens often in a program that uses async, so that layers
// can count what it executes.
//
// It is built with coverage, counted atomically, and started with the name of
// a folder. There, each round of each scene leaves its counters in a folder of
// its own: scene/round. A scene goes on only when its other goroutines are
// parked, so that every round executes the same.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/coverage"
	"strconv"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
)

// rounds is how often each scene is played.
const rounds = 5

var errFailed = errors.New("failed")

// A scene is played by a function that returns an error unless all went as its
// name says.
type scene struct {
	name string
	play func() error
}

var scenes = []scene{
	{"sibling", sibling},
	{"expired", expired},
	{"failure", func() error { return endingWith(errFailed) }},
	{"success", func() error { return endingWith(nil) }},
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: scenes folder")
		os.Exit(2)
	}
	for _, s := range scenes {
		for round := range rounds {
			if err := s.record(filepath.Join(os.Args[1], s.name, strconv.Itoa(round))); err != nil {
				fmt.Fprintf(os.Stderr, "scenes: %s: %v\n", s.name, err)
				os.Exit(1)
			}
		}
	}
}

// record plays s and leaves what it executed in folder.
func (s scene) record(folder string) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	if err := coverage.ClearCounters(); err != nil {
		return err
	}
	return errors.Join(s.play(), coverage.WriteCountersDir(folder), coverage.WriteMetaDir(folder))
}

// sibling is one of two tasks that fails; the other one is cancelled.
func sibling() error {
	return expect(errFailed, async.Scope(context.Background(), func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		async.Go(ctx, func(context.Context) error {
			awaitParked()
			return errFailed
		})
		return nil
	}))
}

// expired is a task that outlasts the time limit of an Await.
func expired() error {
	return async.Scope(context.Background(), func(ctx context.Context) error {
		task := async.Execute(ctx, func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		awaitParked()
		_, err := task.Await(ctx, time.Millisecond)
		return expect(context.DeadlineExceeded, err)
	})
}

// endingWith is what follows once the only task of a scope has returned err:
// counting begins with its return statement.
func endingWith(err error) error {
	return expect(err, async.Scope(context.Background(), func(ctx context.Context) error {
		async.Go(ctx, func(context.Context) error {
			awaitParked()
			if err := coverage.ClearCounters(); err != nil {
				return err
			}
			return err
		})
		return nil
	}))
}

func expect(want, err error) error {
	if !errors.Is(err, want) {
		return fmt.Errorf("%v was expected, and the error is %v", want, err)
	}
	return nil
}

// awaitParked returns when all other goroutines are parked.
func awaitParked() {
	stacks := make([]byte, 1<<20)
	for {
		text := string(stacks[:runtime.Stack(stacks, true)])
		if strings.Count(text, " [running")+strings.Count(text, " [runnable") == 1 {
			return
		}
		runtime.Gosched()
	}
}
