package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"

	"github.com/ambit-go/ambit/async"
)

// A traceServer is the other side: it keeps the log of one job, and has faults.
type traceServer struct {
	fault func() fault   // says what goes wrong with a request; nil: nothing
	seen  func(p []byte) // called with bytes that are in the log for the first time; may be nil

	mu     sync.Mutex
	log    []byte
	shown  int    // the most bytes that the log has ever had
	status string // of the job, as we tell
	state  string // of the job, as we are told
}

// A fault is what goes wrong with a request.
type fault int

const (
	faultNone   fault = iota
	faultBusy         // 503
	faultCut          // the connection breaks, nothing was done
	faultLost         // the connection breaks, all was done
	faultForget       // some of the log is lost before
	faultShort        // only some of the request is taken
	faults
)

// randomFaults returns a fault for about every second request. Some of the log is
// forgotten only twice: nobody can bring a log to a server that always does that.
func randomFaults(seed uint64) func() fault {
	r, forgotten := rand.New(rand.NewPCG(seed, 0)), 0
	return func() fault {
		what := fault(r.IntN(2 * int(faults)))
		if what == faultForget {
			forgotten++
		}
		if what >= faults || what == faultForget && forgotten > 2 {
			return faultNone
		}
		return what
	}
}

// serve serves on the loopback interface until the scope of ctx has nothing else to
// do.
func (s *traceServer) serve(ctx context.Context) (address string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: s}
	async.Go(ctx, func(context.Context) error {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}, async.Name("server"), async.Daemon(), async.OnAbort(func(context.Context, error) error { return server.Close() }))
	return "http://" + l.Addr().String(), nil
}

func (s *traceServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	what := faultNone
	if s.fault != nil {
		what = s.fault()
	}
	if s.status != "" {
		w.Header().Set("Job-Status", s.status)
	}
	switch what {
	case faultBusy:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case faultCut:
		panic(http.ErrAbortHandler)
	case faultForget:
		s.log = s.log[:len(s.log)/2]
	case faultShort:
		body = body[:len(body)/2]
	}
	s.answer(w, r, body)
	if what == faultLost {
		panic(http.ErrAbortHandler)
	}
}

// answer appends to the log what belongs at its end, or looks whether the log is all
// there.
func (s *traceServer) answer(w http.ResponseWriter, r *http.Request, body []byte) {
	fits := false
	if r.Method == http.MethodPatch {
		var start int
		_, err := fmt.Sscanf(r.Header.Get("Content-Range"), "%d-", &start)
		if fits = err == nil && start == len(s.log); fits {
			s.log = append(s.log, body...)
		}
	} else if state := r.Header.Get("State"); state == "running" || r.Header.Get("Size") == strconv.Itoa(len(s.log)) {
		s.state = state
		return
	}
	if n := len(s.log); n > s.shown {
		if s.seen != nil {
			s.seen(s.log[s.shown:])
		}
		s.shown = n
	}
	w.Header().Set("Range", fmt.Sprintf("0-%d", len(s.log)))
	if fits {
		w.WriteHeader(http.StatusAccepted)
	} else {
		w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
	}
}
