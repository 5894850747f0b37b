package lease_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/lease"
)

// An election is what a database has of one: a row, whose column until is compared with the
// database's own clock, and with no other.
type election struct {
	mu      sync.Mutex
	leader  string // empty: none
	until   time.Time
	deposed bool
}

// campaign makes who the leader for d if there is none, as one conditional update does.
func (e *election) campaign(who string, d time.Duration) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.leader != "" && time.Now().Before(e.until) {
		return false
	}
	e.leader, e.until, e.deposed = who, time.Now().Add(d), false
	return true
}

// renew is the renew function of a keeper.
func (e *election) renew(_ context.Context, batch []lease.Renewal[string]) ([]error, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	answers := make([]error, len(batch))
	for i, r := range batch {
		switch {
		case e.leader != r.Of || !time.Now().Before(e.until):
			answers[i] = fmt.Errorf("%w to %q", lease.ErrLost, e.leader)
		case e.deposed:
			answers[i] = fmt.Errorf("%w: deposed", lease.ErrLost)
		default:
			e.until = time.Now().Add(r.Length)
		}
	}
	return answers, nil
}

// resign gives back what who has.
func (e *election) resign(who string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.leader == who {
		e.leader = ""
	}
}

// depose asks for another leader.
func (e *election) depose() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deposed = true
}

// lead waits until who is the leader, and calls work then, whose ctx is done before anybody else
// can be. It returns when all that work has started has ended, and the place is free.
func lead(ctx context.Context, e *election, who string, work func(ctx context.Context, l *lease.Lease) error) error {
	const length = time.Minute
	return async.Scope(ctx, func(ctx context.Context) error {
		k := lease.NewKeeper(ctx, e.renew)
		sent := k.Now() // before each request: the term starts there
		for !e.campaign(who, length) {
			if err := async.Sleep(ctx, 10*time.Millisecond); err != nil {
				return err
			}
			sent = k.Now()
		}
		defer e.resign(who) // after the release, so that no renewal comes later
		l, err := k.Keep(who, lease.Term{Granted: sent, Length: length})
		if err != nil {
			return err
		}
		err = l.Run(ctx, func(ctx context.Context) error { return work(ctx, l) })
		return errors.Join(err, l.Release(context.WithoutCancel(ctx)))
	})
}

// Two processes want to lead; here they are two tasks. The first is deposed while it leads, and
// learns of it before its next step.
func Example() {
	e := &election{}
	leads := make(chan struct{})
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		first := async.Start(ctx, func(ctx context.Context) error {
			return lead(ctx, e, "anna", func(ctx context.Context, l *lease.Lease) error {
				fmt.Println("anna leads")
				close(leads)
				<-async.Start(ctx, func(context.Context) error { e.depose(); return nil }).Done()
				if err := l.Extend(ctx, 0); err != nil { // before a step that must not be cut short
					fmt.Println("anna stops:", err)
					return err
				}
				fmt.Println("anna goes on") // not here
				return nil
			})
		})
		async.Go(ctx, func(ctx context.Context) error {
			<-leads
			return lead(ctx, e, "bert", func(ctx context.Context, l *lease.Lease) error {
				fmt.Println("bert leads:", lease.Check(ctx) == nil)
				return nil
			})
		})
		_, err := first.Join(ctx)
		if !errors.Is(err, lease.ErrLost) {
			return err
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// anna leads
	// anna stops: lease: lost: deposed
	// bert leads: true
	// <nil>
}
