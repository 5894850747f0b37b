package async_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
)

// deafUpload has a task that is told to stop and does not go, while f looks.
func deafUpload(f func(ctx context.Context)) {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		release, runs := make(chan struct{}), make(chan struct{})
		upload := async.Start(ctx, func(context.Context) error { close(runs); <-release; return nil }, async.Name("upload"))
		<-runs
		upload.Cancel(errors.New("the disk is full"))
		f(ctx)
		close(release)
		_, err := upload.Join(ctx)
		return err
	}, async.Name("shop"))
}

func shows(text, word string) { fmt.Println(word, strings.Contains(text, word)) }

// A program that hangs says who waits for whom: here a request of it, for people.
func ExampleDump() {
	deafUpload(func(ctx context.Context) {
		var page strings.Builder
		err := async.Dump(&page, async.Of(ctx))
		shows(page.String(), "upload")
		shows(page.String(), "the disk is full")
		fmt.Println(err)
	})
	// Output:
	// upload true
	// the disk is full true
	// <nil>
}

// The same for programs.
func ExampleSnapshot() {
	deafUpload(func(ctx context.Context) {
		text, err := json.Marshal(async.Snapshot(async.Of(ctx)))
		shows(string(text), "ambit-tree/1")
		fmt.Println(err)
	})
	// Output:
	// ambit-tree/1 true
	// <nil>
}

// The tree of one request, not of the whole process.
func ExampleOf() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		return async.Scope(ctx, func(ctx context.Context) error {
			var page strings.Builder
			err := async.Dump(&page, async.Of(ctx))
			shows(page.String(), "request")
			shows(page.String(), "elsewhere")
			return err
		}, async.Name("request"))
	}, async.Name("elsewhere"))
	// Output:
	// request true
	// elsewhere false
}

// A server with a million tasks shows some of them, and counts the others.
func ExampleAtMost() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		for range 1000 {
			async.Start(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Hour) }, async.Name("session"), async.Daemon())
		}
		var page strings.Builder
		err := async.Dump(&page, async.Of(ctx), async.AtMost(10))
		fmt.Println(strings.Count(page.String(), "\n") < 100, err)
		return err
	})
	// Output: true <nil>
}

// Where a task that does not go stands.
func ExampleStacks() {
	deafUpload(func(ctx context.Context) {
		var page strings.Builder
		_ = async.Dump(&page, async.Of(ctx), async.Stacks(1))
		shows(page.String(), "example_dump_test.go")
	})
	// Output: example_dump_test.go true
}

// Texts of errors may hold what is not for everybody, so a picture for programs has none unless asked.
func ExampleTexts() {
	deafUpload(func(ctx context.Context) {
		var without, with strings.Builder
		_ = async.Snapshot(async.Of(ctx)).WriteText(&without, 0)
		_ = async.Snapshot(async.Of(ctx), async.Texts()).WriteText(&with, 0)
		fmt.Println(strings.Contains(without.String(), "the disk is full"), strings.Contains(with.String(), "the disk is full"))
	})
	// Output: false true
}

// A program that is told to says on the standard error what it is at.
func ExampleDump_signal() {
	_ = func(ctx context.Context, told <-chan os.Signal) { // signal.Notify(told, syscall.SIGUSR1)
		async.Go(ctx, func(ctx context.Context) error {
			for {
				select {
				case <-told:
					_ = async.Dump(os.Stderr, async.Stacks(10))
				case <-ctx.Done():
					return nil
				}
			}
		}, async.Daemon())
	}
}
