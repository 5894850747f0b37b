package record_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/record"
)

// loadPages loads pages, all at the same time; the failure of one stops no other.
func loadPages(ctx context.Context, load func(ctx context.Context, page string) error, pages ...string) {
	for _, page := range pages {
		async.Go(ctx, func(ctx context.Context) error { return load(ctx, page) }, async.Name("load "+page))
	}
}

// The past is kept, in memory that is bounded: it is asked how each task has ended, and written as a page with a time line.
func Example() {
	rec := record.New(record.Bytes(1 << 20))
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		loadPages(ctx, func(_ context.Context, page string) error {
			if page == "jobs" {
				return errors.New("no such page")
			}
			return nil
		}, "home", "about", "jobs")
		return nil
	}, async.OnFailure(func(error) error { return nil }), async.Observe(rec))

	recording := rec.Recording(async.Snapshot())
	for _, e := range recording.Events {
		fmt.Println(e.Task, e.Outcome)
	}
	var page bytes.Buffer
	err := recording.WriteHTML(&page)
	fmt.Println(strings.Contains(page.String(), "no such page"), err)
	// Unordered output:
	// load home ok
	// load about ok
	// load jobs error
	// true <nil>
}
