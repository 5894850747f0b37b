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

var errServerStopped = errors.New("server stopped")

// A cacheServer is a type with a Start and a Stop.
type cacheServer struct{ group *async.Group }

func startServer(ctx context.Context) *cacheServer {
	s := &cacheServer{async.NewGroup(ctx, async.Name("cache"))}
	_ = s.group.Go(func(ctx context.Context) error { // runs until it is told to stop
		<-ctx.Done()
		fmt.Println("loop:", context.Cause(ctx))
		return nil
	})
	return s
}

func (s *cacheServer) stop(ctx context.Context) error {
	return s.group.Stop(ctx, errServerStopped)
}

// A Group is for what is started in one function and stopped in another.
func ExampleGroup() {
	ctx := context.Background()
	s := startServer(ctx)
	fmt.Println("stop:", s.stop(ctx))
	fmt.Println("again:", s.stop(ctx))
	fmt.Println("late:", errors.Is(s.group.Go(func(context.Context) error { return nil }), async.ErrScopeEnded))
	// Output:
	// loop: server stopped
	// stop: <nil>
	// again: <nil>
	// late: true
}

func ExampleNewGroup() {
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		uploads := async.NewGroup(ctx, async.Name("uploads"), async.Limit(2))
		for i := range 3 {
			_ = uploads.Go(func(context.Context) error {
				if i == 1 {
					return errors.New("disk full")
				}
				return nil
			})
		}
		return uploads.Wait(ctx)
	})
	fmt.Println(err)
	// Output: disk full
}

func ExampleGroup_Wait() {
	ctx := context.Background()
	g := async.NewGroup(ctx)
	for i := range 3 {
		_ = g.Go(func(ctx context.Context) error { return async.Sleep(ctx, time.Duration(i)*time.Millisecond) })
	}
	fmt.Println(g.Wait(ctx))
	// Output: <nil>
}

func ExampleGroup_Stop() {
	ctx := context.Background()
	g := async.NewGroup(ctx)
	hurt := make(chan struct{})
	_ = g.Go(func(context.Context) error { <-hurt; return nil }, async.Name("stubborn"))
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	var left *async.StragglerError
	if errors.As(g.Stop(short, errServerStopped), &left) {
		fmt.Println(left.Left[0].Task, "is left")
	}
	close(hurt)
	fmt.Println(g.Stop(ctx, nil))
	// Output:
	// stubborn is left
	// <nil>
}

func ExampleGroup_Cancel() {
	ctx := context.Background()
	g := async.NewGroup(ctx)
	_ = g.Go(func(context.Context) error {
		fmt.Println("first:", g.Cancel(errServerStopped)) // Stop would wait for this task
		fmt.Println("again:", g.Cancel(nil))
		return nil
	})
	fmt.Println(g.Wait(ctx))
	// Output:
	// first: true
	// again: false
	// <nil>
}
