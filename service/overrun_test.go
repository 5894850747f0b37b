package service_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/scheduler"
	"github.com/ambit-go/ambit/service"
)

// The error of a drain that was cut short says whose fault that is: who is still
// draining, for how long, what runs in there, and who was not even told because of that.
func TestTheErrorOfADrainThatWasCutShortNamesWhoOverran(t *testing.T) {
	const text = "service: the drain was cut short: async: services: context deadline exceeded (limit 10s, waited 10s); it was for: told to stop"
	requests := func(n int) func(context.Context) error {
		return func(ctx context.Context) error {
			for range n {
				async.Go(ctx, await, async.Name("request"))
			}
			return await(ctx)
		}
	}
	flush := func(ctx context.Context) error {
		async.Go(ctx, await, async.Name("flush"))
		return nil
	}
	printer := func(ctx context.Context) error {
		worker := scheduler.New(scheduler.Goroutines()).NewWorker(ctx, scheduler.Name("printer"))
		_, err := worker.Schedule(func(ctx context.Context) { <-ctx.Done() })
		return err
	}
	quick := service.Service{Name: "quick", Drain: func(context.Context) error { return nil }, Run: func(ctx context.Context) error {
		<-service.Draining(ctx)
		return async.Sleep(ctx, 2*time.Second)
	}}
	for name, tc := range map[string]struct {
		services []service.Service
		text     string
	}{
		"in Run and Drain": {
			[]service.Service{{Name: "first", Run: await}, {Name: "stuck", Run: await, Drain: await}, quick},
			"; still draining: service stuck for 8s (Run, Drain); not told before: service first",
		},
		"in a task": {
			[]service.Service{{Name: "stuck", Run: requests(1), Drain: flush}},
			"; still draining: service stuck for 10s (Run, request, flush)",
		},
		"in Drain only": {
			[]service.Service{{Name: "stuck", Run: func(ctx context.Context) error { <-service.Draining(ctx); return async.Sleep(ctx, time.Second) }, Drain: requests(1)}},
			"; still draining: service stuck for 10s (Drain, request)",
		},
		"in a group and a daemon of it": {
			[]service.Service{{Name: "stuck", Drain: func(context.Context) error { return nil }, Run: func(ctx context.Context) error {
				group := async.NewGroup(ctx)
				async.Go(ctx, requests(1), async.Name("ticker"), async.Daemon())
				_ = group.Go(await, async.Name("in a group"))
				<-ctx.Done()
				return group.Stop(context.WithoutCancel(ctx), nil)
			}}},
			"; still draining: service stuck for 10s (Run, in a group)",
		},
		"in a worker that ends": {
			[]service.Service{service.Resource("stuck", printer)},
			"; still draining: service stuck for 10s (end of printer of service stuck)",
		},
		"in a worker": {
			[]service.Service{{Name: "stuck", Drain: func(context.Context) error { return nil }, Run: func(ctx context.Context) error {
				return errors.Join(printer(ctx), await(ctx))
			}}},
			"; still draining: service stuck for 10s (Run, printer)",
		},
		"in many": {
			[]service.Service{{Name: "stuck", Run: requests(100), Drain: await}},
			"; still draining: service stuck for 10s (Run, request, request, request, request and 97 more)",
		},
		"without a name": {
			[]service.Service{{Run: await, Drain: await}},
			"; still draining: service 1 for 10s (Run, Drain)",
		},
		"in a Run inside": {
			[]service.Service{nest("outer", service.Service{Name: "inner", Run: await, Drain: await})},
			"; still draining: service outer for 10s (Run, services, service inner, service inner: drain)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
				time.AfterFunc(time.Second, func() { stop(errStop) })
				err := service.Run(ctx, tc.services, service.Grace(10*time.Second))
				require.EqualError(t, err, text+tc.text)
			})
		})
	}
}

// To be asked what runs there does not stop a service: it is told of level 2 with the cause of that. Whether the question
// would come first is a matter of chance, so there are several turns.
func TestAServiceThatIsNamedHasTheCauseOfLevel2(t *testing.T) {
	for range 50 {
		inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
			var cause error
			drains := service.Service{Name: "drains", Drain: func(context.Context) error { return nil }, Run: func(ctx context.Context) error {
				<-ctx.Done()
				cause = context.Cause(ctx)
				return cause
			}}
			time.AfterFunc(time.Second, func() { stop(errStop) })
			err := service.Run(ctx, []service.Service{drains}, service.Grace(time.Second))
			require.ErrorIs(t, cause, errStop)
			require.NotErrorIs(t, err, async.ErrDismissed)
		})
	}
}

// Without any time nobody's turn has come.
func TestTheErrorOfADrainWithoutTimeNamesWhoWasNotTold(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		time.AfterFunc(time.Second, func() { stop(errStop) })
		err := service.Run(ctx, []service.Service{{Name: "a", Run: await}, {Name: "b", Run: func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			return ctx.Err()
		}}}, service.Grace(0))
		require.EqualError(t, err, "service: the drain was cut short: async: services: context deadline exceeded (the limit had passed before); "+
			"it was for: told to stop; still draining: service b for 0s (Run); not told before: service a")
	})
}
