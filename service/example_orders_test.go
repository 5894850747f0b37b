package service_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/batch"
	"github.com/ambit-go/ambit/service"
)

// A shop accepts orders over HTTP, and writes them down many at a time.
type shop struct {
	listener net.Listener
	orders   *batch.Batch[string]
}

// run serves until ctx is done, and then drains: an order that was accepted is written down.
func (s *shop) run(ctx context.Context) error {
	return service.Run(ctx, []service.Service{
		service.Resource("journal", func(ctx context.Context) error { // stands before those that use it
			s.orders = batch.New(ctx, s.write, batch.Age(10*time.Millisecond))
			return nil
		}),
		{Name: "sweeper", Run: s.sweep, Options: []async.TaskOption{ // is called again when it has failed
			async.Restart(async.RestartPolicy{Interval: async.Backoff(time.Second, time.Minute)}),
		}},
		service.HTTP("http", s.listener, &http.Server{Handler: s}),
	}, service.Grace(20*time.Second))
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := s.orders.Do(r.Context(), r.URL.Path); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprint(w, "accepted")
}

func (s *shop) write(_ context.Context, orders []string) error {
	fmt.Println("written:", strings.Join(orders, " "))
	return nil
}

// sweep has no Drain, so its ctx is cancelled when the server has answered its last request.
func (s *shop) sweep(ctx context.Context) error {
	for async.Sleep(ctx, time.Minute) == nil {
		fmt.Println("swept")
	}
	return nil
}

// In a program main is service.Main(run), whose ctx ends with the first signal; here it ends by a call.
func Example() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &shop{listener: l}
	running := async.Start(context.WithoutCancel(ctx), func(context.Context) error { return s.run(ctx) })
	r, err := http.Get("http://" + l.Addr().String() + "/coffee")
	if err == nil {
		fmt.Println(r.Status)
		_ = r.Body.Close()
	}
	stop()
	_, err = running.Join(context.Background())
	fmt.Println(err)
	// Output:
	// written: /coffee
	// 200 OK
	// <nil>
}
