package clock

import (
	"time"

	"github.com/ambit-go/ambit/internal/clock"
)

// The monotonic clock of Go stands still on Linux while the machine is suspended. A
// lease does not, if its store is on another machine.

// machine knows of the suspends since the program began.
var machine = clock.New()

// Steady returns the time of a clock that runs on while the machine is suspended. It is
// to be compared with other times of it.
func Steady() time.Time {
	slept := machine.Suspended()
	return Now().Add(slept)
}

// FromSteady returns the time of Now that is as far away as t is in the time of Steady.
func FromSteady(t time.Time) time.Time { return Now().Add(t.Sub(Steady())) }

// Suspend makes it seem, for tests, that the machine was suspended for d. It cannot be
// taken back.
func Suspend(d time.Duration) { machine.Suspend(d) }
