package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
)

// A traceServer is the other side: it keeps the log of one job, and has faults.
type traceServer struct {
	fault func() fault // says what goes wrong with a request; nil: nothing

	mu     sync.Mutex
	log    []byte
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
	w.Header().Set("Range", fmt.Sprintf("0-%d", len(s.log)))
	if fits {
		w.WriteHeader(http.StatusAccepted)
	} else {
		w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
	}
}
