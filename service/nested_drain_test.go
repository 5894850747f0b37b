package service_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/service"
)

// nest returns a service that runs services.
func nest(name string, services ...service.Service) service.Service {
	return service.Service{Name: name, Run: func(ctx context.Context) error { return service.Run(ctx, services) }}
}

// loop is a service that takes until Draining is closed, and has something left to finish then.
func loop(d *diary, name string, left time.Duration) service.Service {
	return service.Service{
		Name: name,
		Run: func(ctx context.Context) error {
			<-service.Draining(ctx)
			d.note(name + " takes no more")
			d.note(fmt.Sprint(name, " has finished: ", async.Sleep(ctx, left)))
			return nil
		},
		Drain: func(context.Context) error { d.note(name + " drains"); return nil },
	}
}

// A loop takes no more as soon as any Run around it drains, however long the services
// whose turn is first take.
func TestDrainingOfANestedRunIsClosedBeforeAnybodysTurn(t *testing.T) {
	for name, depth := range map[string]int{"one in another": 1, "three": 3} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
				d := newDiary()
				inner := loop(d, "loop", 20*time.Second)
				for range depth {
					inner = nest("nest", inner)
				}
				time.AfterFunc(time.Second, func() { stop(errStop) })
				require.NoError(t, service.Run(ctx, []service.Service{inner, d.worker("web", 10*time.Second)}, service.Delay(time.Second), service.Grace(time.Minute)))
				assert.Equal(t, []string{"web runs", "loop takes no more", "web drains", "web ends", "loop drains", "loop has finished: <nil>"}, d.read())
			})
		})
	}
}

// A nested Run may be called when the drain has begun, as by a Drain.
func TestDrainingOfARunThatIsCalledDuringTheDrainIsClosed(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		d := newDiary()
		time.AfterFunc(time.Second, func() { stop(errStop) })
		require.NoError(t, service.Run(ctx, []service.Service{{Name: "outer", Run: func(ctx context.Context) error {
			<-service.Draining(ctx)
			return nest("nest", loop(d, "loop", time.Second)).Run(ctx)
		}, Drain: func(ctx context.Context) error { return nest("nest", loop(d, "flush", time.Second)).Run(ctx) }}}))
		assert.ElementsMatch(t, []string{"loop takes no more", "loop has finished: <nil>", "flush takes no more", "flush has finished: <nil>"}, d.read())
	})
}

// A loop that ends because the Run around drains is not what ends the others of its
// own Run: those serve until their turn has come, for services that still drain need them.
func TestALoopThatTakesNoMoreEndsNobodyBeforeTheirTurn(t *testing.T) {
	for name, says := range map[string]error{"nil": nil, "a closed server": http.ErrServerClosed} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
				d := newDiary()
				quick := service.Service{Name: "loop", Run: func(ctx context.Context) error {
					<-service.Draining(ctx)
					d.note("loop ends")
					return says
				}}
				time.AfterFunc(time.Second, func() { stop(errStop) })
				require.NoError(t, service.Run(ctx, []service.Service{
					nest("nest", d.worker("database", time.Second), quick), d.worker("web", 10*time.Second),
				}, service.Delay(time.Second)))
				assert.Equal(t, []string{"loop ends", "web drains", "web ends", "database drains", "database ends"}, d.read()[2:])
			})
		})
	}
}

// A Run that is shielded from the one around it hears of that by a loop that ends, when
// the turn of its service has come.
func TestAShieldedRunEndsWithItsLoopWhenItsTurnHasCome(t *testing.T) {
	for name, drain := range map[string]func(context.Context) error{
		"without a Drain": nil,
		"with one":        func(context.Context) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
				d := newDiary()
				time.AfterFunc(time.Second, func() { stop(errStop) })
				require.NoError(t, service.Run(ctx, []service.Service{
					{Name: "shielded", Drain: drain, Run: func(ctx context.Context) error {
						return nest("nest", d.worker("database", time.Second), loop(d, "loop", 0)).Run(context.WithoutCancel(ctx))
					}},
					d.worker("web", 10*time.Second),
				}, service.Delay(time.Second)))
				assert.Equal(t, []string{"web drains", "web ends", "database drains", "database ends"}, d.read()[4:])
			})
		})
	}
}

// A service that ends as it starts, because the Run around drains, is not waited for, and
// nothing is started after it.
func TestAServiceThatTakesNoMoreAsItStartsEndsTheStart(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		begun := time.Now()
		time.AfterFunc(time.Second, func() { stop(errStop) })
		require.NoError(t, service.Run(ctx, []service.Service{nest("nest",
			service.Service{Name: "booting", Startup: time.Hour, Run: func(ctx context.Context) error {
				<-service.Draining(ctx)
				return nil
			}},
			service.Service{Name: "next", Run: func(context.Context) error { t.Error("it was started"); return nil }},
		)}, service.Delay(time.Minute)))
		assert.Equal(t, time.Second, time.Since(begun), "all have ended: there is nothing to delay")
	})
}

// Draining of a Run that has ended is closed: nothing is left that may take.
func TestDrainingOfARunThatHasEndedIsClosed(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, _ context.CancelCauseFunc) {
		var inside context.Context
		require.ErrorIs(t, service.Run(ctx, []service.Service{{Run: func(ctx context.Context) error {
			inside = ctx
			return errPlanted
		}}}), errPlanted)
		<-service.Draining(inside)
	})
}
