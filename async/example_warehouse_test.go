package async_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A warehouse says how many of an item it has, if it is not busy, and when it comes to it.
type warehouse struct {
	name     string
	items    int
	busy     int           // so many calls fail
	takes    time.Duration // to answer
	patience time.Duration // of those who ask; 0: without end
}

var errBusy = errors.New("busy")

// ask asks once.
func (w *warehouse) ask(ctx context.Context) (int, error) {
	if w.busy--; w.busy >= 0 {
		return 0, errBusy
	}
	return w.items, async.Sleep(ctx, w.takes)
}

// count asks at most three times.
func (w *warehouse) count(ctx context.Context) (int, error) {
	return async.Retry(ctx, async.Backoff(time.Millisecond, time.Second), w.ask, async.Attempts(3))
}

// stock asks all warehouses at the same time. When it returns nobody asks any more.
func stock(ctx context.Context, warehouses ...*warehouse) (sum int, missing []string, err error) {
	err = async.Scope(ctx, func(ctx context.Context) error {
		var counts []*async.Future[int]
		for _, w := range warehouses {
			counts = append(counts, async.Execute(ctx, w.count, async.Name(w.name)))
		}
		for i, w := range warehouses {
			n, err := counts[i].Await(ctx, w.patience)
			switch {
			case errors.Is(err, errBusy):
				missing = append(missing, w.name+" is busy")
			case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
				missing = append(missing, w.name+" is late") // and has been told to stop
			case err != nil:
				return err // the others are cancelled and joined
			}
			sum += n
		}
		return nil
	}, async.Name("stock"))
	return sum, missing, err
}

// An item is counted in several warehouses: each is asked again if it is busy, none for longer than it may take, and what
// is missing is told.
func Example() {
	sum, missing, err := stock(context.Background(),
		&warehouse{name: "north", items: 3},
		&warehouse{name: "east", items: 4, busy: 2},
		&warehouse{name: "south", items: 5, takes: time.Hour, patience: 20 * time.Millisecond},
		&warehouse{name: "west", items: 6, busy: 3})
	fmt.Println(sum, missing, err)
	// Output: 7 [south is late west is busy] <nil>
}
