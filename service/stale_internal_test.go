package service

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// The third signal says what has failed first. A Run that has failed in a service that was started again, months ago, is not it.
func TestAFailureThatWasMendedIsNotTheFirst(t *testing.T) {
	for name, restarts := range map[string]bool{"mended": true, "not mended": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				root, _ := asynctest.Root(t.Context())
				p := newProgramInBubble([]Option{Log(nil)})
				ctx, stop := context.WithCancel(context.WithValue(root, programKey{}, p))
				calls := 0
				outer := Service{Name: "outer", Run: func(ctx context.Context) error {
					if calls++; calls > 1 {
						<-ctx.Done()
						return nil
					}
					return Run(ctx, []Service{{Name: "inner", Run: func(context.Context) error { return errors.New("planted") }}})
				}}
				if restarts {
					outer.Options = []async.TaskOption{async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)})}
				}
				time.AfterFunc(time.Hour, stop)
				err := Run(ctx, []Service{outer})
				p.mu.Lock()
				defer p.mu.Unlock()
				if restarts {
					assert.NoError(t, err)
					assert.Empty(t, p.noted)
				} else {
					assert.ErrorContains(t, p.noted[0].err, "planted")
				}
			})
		})
	}
}

// The reason why the program ends is noted although a Run in another service has failed before, which is mended then.
func TestAFailureIsNotForgottenWithOneThatWasMended(t *testing.T) {
	p := newProgram(nil)
	ctx := context.WithValue(t.Context(), programKey{}, p)
	outer := newSet(ctx, []Service{{Run: func(context.Context) error { return nil }}}, nil)
	inner := newSet(context.WithValue(ctx, memberKey{}, outer.members[0]), nil, nil)
	reason := errors.New("the reason")
	p.note(errors.New("mended"), inner)
	p.note(reason, outer)
	p.mended(outer.members[0])
	if assert.Len(t, p.noted, 1) {
		assert.Equal(t, reason, p.noted[0].err)
	}
}

// A service may call Run for each of its orders for a year: the failures of these are forgotten, and not that of the program.
func TestFailuresOfRunsInAServiceDoNotPileUp(t *testing.T) {
	p := newProgram([]Option{Log(nil)})
	outer := &set{}
	reason := errors.New("reason")
	for i := range 1000 {
		if i == 500 {
			p.note(reason, outer)
		}
		p.note(errors.New("planted"), &set{parent: &member{set: outer}})
	}
	assert.Len(t, p.noted, maxRemarks)
	assert.Contains(t, p.noted, noted{reason, outer})
}
