package async_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func ExampleGo() {
	site := map[string]string{"/": "welcome", "/about": "who we are", "/jobs": ""}
	pages := []string{"/", "/about", "/jobs"}
	words := make([]int, len(pages))
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		for i, page := range pages {
			async.Go(ctx, func(context.Context) error {
				text, ok := site[page]
				if !ok {
					return fmt.Errorf("%s: not found", page) // would cancel the others
				}
				words[i] = len(strings.Fields(text))
				return nil
			})
		}
		return nil
	})
	fmt.Println(words, err) // no lock: all of them have ended
	// Output: [1 3 0] <nil>
}

func ExampleScopeError() {
	errQuota := errors.New("quota exceeded")
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		async.OnExit(ctx, func(context.Context, error) error {
			return fmt.Errorf("remove lock file: %w", fs.ErrPermission)
		})
		async.Go(ctx, func(context.Context) error { return errQuota })
		async.Go(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err() // only stopped, so it is not listed
		})
		return nil
	}, async.Name("import"))
	var all *async.ScopeError
	if errors.As(err, &all) {
		fmt.Printf("%s: %q\n", all.Scope, all.Errors) // the first one decided
	}
	fmt.Println(errors.Is(err, errQuota), errors.Is(err, fs.ErrPermission), errors.Is(err, context.Canceled))
	// Output:
	// import: ["quota exceeded" "remove lock file: permission denied"]
	// true true false
}

func ExampleDetach() {
	ctx, _ := asynctest.Root(context.Background()) // for this example only; a program uses the ctx it has
	paid := make(chan struct{})
	err := async.Scope(ctx, func(ctx context.Context) error {
		async.Detach(ctx, "audit log", func(ctx context.Context) error {
			<-paid
			fmt.Println("logged, cancelled:", ctx.Err() != nil)
			return nil
		})
		return errors.New("the customer hung up")
	})
	fmt.Println("scope:", err)
	fmt.Println("running:", asynctest.Live(ctx))
	close(paid)
	fmt.Println("shutdown:", async.Shutdown(ctx)) // waits for the log
	// Output:
	// scope: the customer hung up
	// running: [audit log]
	// logged, cancelled: false
	// shutdown: <nil>
}

func ExampleShutdown() {
	ctx, _ := asynctest.Root(context.Background()) // for this example only; a program uses the ctx it has
	async.Detach(ctx, "upload logs", func(context.Context) error { return errors.New("no space left") })
	fmt.Println("shutdown:", async.Shutdown(ctx)) // at the end of main
	// Output: shutdown: no space left
}

func ExampleShutdown_straggler() {
	ctx, _ := asynctest.Root(context.Background()) // for this example only; a program uses the ctx it has
	printed := make(chan struct{})
	async.Detach(ctx, "print labels", func(ctx context.Context) error {
		<-printed // the printer knows no context
		fmt.Println("printed, although", context.Cause(ctx))
		return nil
	})
	patient, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	var left *async.StragglerError
	if errors.As(async.Shutdown(patient), &left) {
		fmt.Println("left:", left.Left[0].Task)
	}
	close(printed)
	fmt.Println("shutdown:", async.Shutdown(ctx)) // with more patience
	// Output:
	// left: print labels
	// printed, although async: shutting down
	// shutdown: <nil>
}
