package locks_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/memstore"
)

func newManager(options ...locks.Option) *locks.Manager {
	m, err := locks.New(memstore.New(), options...)
	if err != nil {
		panic(err)
	}
	return m
}

func ExampleManager_With() {
	m := newManager()
	balance := 0
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		for range 10 {
			async.Go(ctx, func(ctx context.Context) error {
				return m.With(ctx, "account/7", func(ctx context.Context) error {
					b := balance
					err := async.Sleep(ctx, time.Millisecond)
					balance = b + 1
					return err
				})
			})
		}
		return nil
	})
	fmt.Println(balance, err)
	// Output: 10 <nil>
}

func ExampleManager_With_lost() {
	m := newManager()
	err := m.With(context.Background(), "k", func(ctx context.Context) error {
		h := locks.From(ctx)
		_ = m.ReleaseVersion(ctx, "k", h.Version()) // somebody takes it away
		_ = h.Extend(ctx, time.Minute)              // the next renewal would notice it, too
		<-ctx.Done()
		return nil // and yet:
	})
	var lost *locks.LostError
	fmt.Println(errors.As(err, &lost), lost.Reason)
	// Output: true stolen
}

func ExampleManager_TryWith() {
	m := newManager()
	ctx := context.Background()
	_ = m.With(ctx, "k", func(context.Context) error {
		ran, err := m.TryWith(ctx, "k", func(context.Context) error { return nil })
		fmt.Println(ran, err)
		return nil
	})
	// Output: false <nil>
}

func ExampleManager_WithPermit() {
	m := newManager()
	err := m.WithPermit(context.Background(), "pool", 10, func(ctx context.Context) error {
		fmt.Println("connection", locks.From(ctx).Slot(), "of 10")
		return nil
	})
	fmt.Println(err)
	// Output:
	// connection 0 of 10
	// <nil>
}

func ExampleManager_WithAll() {
	m := newManager()
	err := m.WithAll(context.Background(), []string{"to", "from"}, func(ctx context.Context) error {
		fmt.Println(locks.FromKey(ctx, "from").Err(), locks.FromKey(ctx, "to").Err())
		return nil
	})
	fmt.Println(err)
	// Output:
	// <nil> <nil>
	// <nil>
}

func ExampleManager_Lead() {
	m := newManager()
	terms := 0
	err := m.Lead(context.Background(), "leader", func(ctx context.Context) error {
		if terms++; terms < 3 { // this term ends with a loss
			h := locks.From(ctx)
			_ = m.ReleaseVersion(ctx, "leader", h.Version())
			_ = h.Extend(ctx, time.Minute)
			<-ctx.Done()
		}
		return nil
	})
	fmt.Println(terms, err)
	// Output: 3 <nil>
}

func ExampleManager_Acquire() {
	m := newManager()
	ctx := context.Background()
	h, err := m.Acquire(ctx, "session/9", locks.Wait(time.Second), locks.Data("since noon"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(h.Key(), h.Err())
	fmt.Println(h.Release(ctx), h.Release(ctx))
	fmt.Println(h.Err())
	// Output:
	// session/9 <nil>
	// <nil> <nil>
	// locks: the lock was released
}

func ExampleMetrics() {
	metrics := locks.NewMetrics("")
	m := newManager(locks.Observe(metrics.Observe))
	_ = m.With(context.Background(), "k", func(context.Context) error { return nil })
	page := httptest.NewRecorder()
	metrics.ServeHTTP(page, nil)
	for line := range strings.Lines(page.Body.String()) {
		if strings.HasPrefix(line, "locks_requests_total") {
			_, _ = os.Stdout.WriteString(line)
		}
	}
	// Output:
	// locks_requests_total{method="acquire",status="ok"} 1
	// locks_requests_total{method="release",status="ok"} 1
}
