package async_test

import (
	"context"
	"fmt"
	"runtime/pprof"
	"strings"

	"github.com/ambit-go/ambit/async"
)

// The profile of goroutines says which task each is of.
func ExampleProfile() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		async.Go(ctx, func(context.Context) error {
			var profile strings.Builder
			err := pprof.Lookup("goroutine").WriteTo(&profile, 1)
			fmt.Println(strings.Contains(profile.String(), `"async.task":"fetch #"`))
			return err
		}, async.Name("fetch 17"))
		return nil
	}, async.Profile())
	// Output: true
}
