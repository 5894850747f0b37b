package service_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/clitest"
	"github.com/ambit-go/ambit/service"
)

// TestMain runs one of the programs that tests start instead, if it is named in the
// environment.
func TestMain(m *testing.M) {
	if name := os.Getenv(programVariable); name != "" {
		limit, hangs := hangsInText[name]
		if !hangs {
			limit = patient
		}
		service.SetLastWords(limit)
		programs[name]()
		return
	}
	os.Exit(clitest.LeakChecked(m).Run())
}

// patient is how long the third signal waits for the last words of a program: as long as they take. Programs
// whose words have no end stand in hangsInText.
const patient = time.Minute

var hangsInText = map[string]time.Duration{"hangs, text": time.Second, "hangs, noted": 5 * time.Second}

// programVariable names the program that the test binary is to be.
const programVariable = "AMBIT_SERVICE_PROGRAM"

// TestAPlantedGoroutineIsFound shows that the check of TestMain can fail.
func TestAPlantedGoroutineIsFound(t *testing.T) {
	stop := make(chan struct{})
	ignore := goleak.IgnoreCurrent()
	go func() { <-stop }()
	if goleak.Find(ignore) == nil {
		t.Error("a leaked goroutine was not found")
	}
	close(stop)
	err := goleak.Find(ignore)
	for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); {
		err = goleak.Find(ignore) // it has not had its turn to end
	}
	if err != nil {
		t.Error(err)
	}
}

var (
	errPlanted = errors.New("planted")
	errStop    = errors.New("told to stop")
)

// inBubble runs f in a synctest bubble, with a ctx that has a root of its own and can
// be cancelled.
func inBubble(t *testing.T, f func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancelCause(asynctest.Context(t))
		defer stop(nil)
		f(t, ctx, stop)
	})
}

// await is a Run that serves until its ctx is cancelled, and says so as most do.
func await(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// A script is a service whose steps are noted in a diary.
type diary struct{ events chan string }

func newDiary() *diary { return &diary{make(chan string, 1000)} }

func (d *diary) note(text string) { d.events <- text }

// read returns what was noted so far.
func (d *diary) read() (events []string) {
	for {
		select {
		case e := <-d.events:
			events = append(events, e)
		default:
			return events
		}
	}
}

// worker is a service that notes its start and end, and ends when it is drained,
// after the time that it needs for that.
func (d *diary) worker(name string, needs time.Duration) service.Service {
	quit := make(chan struct{})
	return service.Service{
		Name: name,
		Run: func(ctx context.Context) error {
			d.note(name + " runs")
			select {
			case <-quit:
				if ctx.Err() != nil {
					d.note(name + " was cancelled while it drained")
				}
				d.note(name + " ends")
				return nil
			case <-ctx.Done():
				d.note(name + " is cancelled")
				return ctx.Err()
			}
		},
		Drain: func(ctx context.Context) error {
			d.note(name + " drains")
			select {
			case <-time.After(needs):
				close(quit)
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	}
}

// goroutines returns how many goroutines there are in this bubble, if there is but one.
func goroutines() int {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return bytes.Count(stacks, []byte(", synctest bubble "))
}
