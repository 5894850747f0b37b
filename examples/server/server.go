package main

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/ambit-go/ambit/jobqueue"
	"github.com/ambit-go/ambit/service"
)

// An order is what somebody wants.
type order struct {
	number int64
	text   string
}

const longest = 1000 // bytes of an order

// A server takes orders.
type server struct {
	queue    *jobqueue.Queue[order, order]
	numbers  atomic.Int64
	accepted atomic.Int64
}

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", s.order)
	mux.HandleFunc("GET /health", health)
	return mux
}

// order accepts an order, or says that it has not. Its connection, and the ctx of
// the request, live through the drain: a client that has begun may finish. At a
// second signal both end.
func (s *server) order(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, longest))
	if err != nil {
		http.Error(w, "not accepted: "+err.Error(), http.StatusBadRequest)
		return
	}
	o := order{s.numbers.Add(1), fmt.Sprintf("%q", text)}
	if !s.queue.Add(o) {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "not accepted: there is too much to do", http.StatusServiceUnavailable)
		return
	}
	s.accepted.Add(1)
	w.WriteHeader(http.StatusAccepted)
	fmt.Fprintln(w, "accepted:", o.number)
}

// health is for a load balancer. It says no from the first signal on, while orders
// are still taken for the time of -delay.
func health(w http.ResponseWriter, r *http.Request) {
	if !service.IsReady(r.Context()) {
		http.Error(w, "draining", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
}
