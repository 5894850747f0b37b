package record_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/record"
)

// Failures that nobody would see, because the scope carries on.
func ExampleLog() {
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.LevelKey || a.Key == "task" || a.Key == "err" {
			return a
		}
		return slog.Attr{}
	}}))
	carryOn := async.OnFailure(func(error) error { return nil })
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		async.Go(ctx, func(context.Context) error { return errors.New("connection reset") }, async.Name("conn 1"))
		return nil
	}, carryOn, async.Observe(record.Log(log)))
	// Output: level=WARN task="conn 1" err="connection reset"
}

// work is a scope of two tasks, one of which fails.
func work(rec *record.Recorder) {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		load := async.Start(ctx, func(context.Context) error { return errors.New("no such page") }, async.Name("load"))
		_, err := load.Wait(ctx)
		async.Go(ctx, func(context.Context) error { return nil }, async.Name("tell"))
		return err
	}, async.Name("work"), async.Observe(rec))
}

func ExampleNew() {
	rec := record.New()
	work(rec)
	for _, e := range rec.Recording(nil).Events {
		fmt.Println(e.Task, e.Outcome)
	}
	fmt.Println(rec.Recording(nil).Failures[0].Text)
	// Unordered output:
	// load error
	// tell ok
	// no such page
}

func ExampleBytes() {
	rec := record.New(record.Bytes(64 << 20))
	work(rec)
	fmt.Println(rec.Recording(nil).Lost)
	// Output: 0
}

func ExampleOpen() {
	rec := record.New()
	work(rec)
	var file bytes.Buffer
	if err := rec.Save(&file); err != nil {
		fmt.Println(err)
	}
	recording, err := record.Open(&file)
	fmt.Println(len(recording.Events), len(recording.Failures), err)
	// Output: 2 1 <nil>
}

func ExampleCallers() {
	rec := record.New(record.Callers())
	work(rec)
	place, _, _ := strings.Cut(rec.Recording(nil).Events[0].Place, ":")
	fmt.Println(place)
	// Output: record/example_test.go
}

func ExampleWaitsOver() {
	rec := record.New(record.WaitsOver(time.Minute))
	work(rec)
	fmt.Println(len(rec.Recording(nil).Waits))
	// Output: 0
}

func ExampleSample() {
	rec := record.New(record.Sample(100))
	work(rec)
	fmt.Println(rec.Recording(nil).Spared, "were left out: all have names")
	// Output: 0 were left out: all have names
}
