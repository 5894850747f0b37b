package async_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A fixedPool runs tasks on a few goroutines that stay.
type fixedPool struct {
	tasks   chan func()
	closing chan struct{}
	workers sync.WaitGroup
}

func newFixedPool(workers int) *fixedPool {
	p := &fixedPool{tasks: make(chan func()), closing: make(chan struct{})}
	for range workers {
		p.workers.Go(p.work)
	}
	return p
}

func (p *fixedPool) work() {
	for {
		select {
		case task := <-p.tasks:
			task()
		case <-p.closing:
			return
		}
	}
}

// Execute waits until a goroutine is free. It makes fixedPool an async.Executor.
func (p *fixedPool) Execute(task func()) error {
	select {
	case p.tasks <- task:
		return nil
	case <-p.closing:
		return errors.New("pool is closed")
	}
}

// Close waits for what was taken.
func (p *fixedPool) Close() {
	close(p.closing)
	p.workers.Wait()
}

func ExampleOn() {
	p := newFixedPool(2)
	defer p.Close()
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		busy := make(chan struct{}, 2) // would block a third
		for _, picture := range []string{"cat.jpg", "dog.jpg", "fox.jpg", "owl.jpg"} {
			async.Go(ctx, func(context.Context) error {
				select {
				case busy <- struct{}{}:
					<-busy // resized
					return nil
				default:
					return fmt.Errorf("%s: more than two at once", picture)
				}
			})
		}
		return nil
	}, async.On(p)) // whatever is started in the scope
	fmt.Println("resized:", err)
	// Output: resized: <nil>
}

func ExampleRejectedError() {
	p := newFixedPool(2)
	p.Close() // too early
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		small := async.Execute(ctx, func(context.Context) (string, error) {
			return "small-cat.jpg", nil
		}, async.On(p), async.Name("resize"))
		file, err := small.Await(ctx, time.Minute)
		var refused *async.RejectedError
		if errors.As(err, &refused) {
			fmt.Printf("%q: %s was refused because %v\n", file, refused.Task, refused.Err)
		}
		return nil
	})
	// Output: "": resize was refused because pool is closed
}
