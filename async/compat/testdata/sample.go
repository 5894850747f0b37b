package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/async/compat"
)

var errOdd = errors.New("odd")

type job struct {
	future compat.Awaiter
	abort  compat.AbortHandler
}

func half(_ context.Context, request interface{}) (interface{}, error) {
	n := request.(int)
	if n%2 == 1 {
		return nil, errOdd
	}
	return n / 2, nil
}

func untilStopped(ctx context.Context, _ interface{}) (interface{}, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func start(ctx context.Context, handler compat.Handler, request int) compat.Awaiter {
	return compat.Execute(ctx, handler, compat.NoAbort, request)
}

func main() {
	ctx := context.Background()

	futures := make([]compat.Awaiter, 0)
	for _, n := range []int{8, 9} {
		futures = append(futures, start(ctx, half, n))
	}
	for _, future := range futures {
		fmt.Println(future.Await(ctx, time.Minute))
	}

	stopped := make(chan interface{}, 1)
	j := job{abort: func(_ context.Context, request interface{}) (interface{}, error) {
		stopped <- request
		return nil, nil
	}}
	abort := j.abort
	name := "process 7"
	j.future = compat.Execute(ctx, untilStopped, abort, name)
	_, err := j.future.Await(ctx, time.Millisecond)
	fmt.Println(errors.Is(err, context.DeadlineExceeded), <-stopped)

	fast := func(context.Context) (interface{}, error) { return "fast", nil }
	slow := func(ctx context.Context) (interface{}, error) { return untilStopped(ctx, nil) }
	race, err := compat.ExecuteRacer(ctx, slow, fast)
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(race.Await(ctx, time.Minute))
	contenders := []compat.NoArgHandler{slow, slow, slow, fast}
	race, err = compat.ExecuteRacer(ctx, contenders...)
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(race.Await(ctx, time.Minute))

	polls := 0
	up := func(_ context.Context, service interface{}) (bool, interface{}, error) {
		polls++
		return polls == 3, fmt.Sprint(service, " is up"), nil
	}
	fmt.Println(compat.ExecutePolling(ctx, up, compat.NoAbort, name, time.Millisecond).Await(ctx, time.Minute))
}
