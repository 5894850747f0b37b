package compat_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/async/compat"
)

func Example() {
	ctx := context.Background()
	square := func(_ context.Context, request any) (any, error) {
		n := request.(int)
		return n * n, nil
	}
	var futures []compat.Awaiter
	for i := range 4 {
		futures = append(futures, compat.Execute(ctx, square, compat.NoAbort, i))
	}
	for _, res := range compat.AwaitAll(ctx, time.Minute, futures...) {
		fmt.Println(res.Result, res.Err)
	}
	// Output:
	// 0 <nil>
	// 1 <nil>
	// 4 <nil>
	// 9 <nil>
}
