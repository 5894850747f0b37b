//go:build unix

package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
)

// A traceServer is the other side: it keeps the log of one job, and has faults.
type traceServer struct {
	// fault says what goes wrong with a request, or nothing if it is empty. It
	// is called by one goroutine at a time.
	fault func(r *http.Request) fault

	// seen, if it is not nil, is called with bytes that are in the log for the
	// first time. It is called by one goroutine at a time.
	seen func(p []byte)

	mu       sync.Mutex
	log      []byte
	shown    int    // the most bytes that the log has ever had
	status   string // of the job, as we tell; empty for running
	interval string // in seconds, as we tell; empty for nothing
	state    string // of the job, as we are told
	code     int
	asked    int // how often we were told of its end
	requests int
}

// A fault is what goes wrong with a request.
type fault string

const (
	faultNone    fault = ""
	faultBusy    fault = "busy"    // 503
	faultCut     fault = "cut"     // the connection breaks, nothing was done
	faultLost    fault = "lost"    // the connection breaks, all was done
	faultForget  fault = "forget"  // some of the log is lost before
	faultShort   fault = "short"   // only some of the request is taken
	faultCorrupt fault = "corrupt" // a byte of the log is changed before
	faultLater   fault = "later"   // 202 where it could be 200
)

// randomFaults returns a fault for about every second request that carries some
// of the log, and for every third other one. The log is harmed
// only twice: nobody can bring a log to a server that always does that.
func randomFaults(seed uint64) func(*http.Request) fault {
	r := rand.New(rand.NewPCG(seed, 0))
	patch := []fault{faultBusy, faultCut, faultLost, faultForget, faultShort, faultCorrupt}
	put := []fault{faultBusy, faultCut, faultLost, faultLater}
	harm := 0
	return func(request *http.Request) fault {
		all, one := patch, 2
		if request.Method == http.MethodPut {
			all, one = put, 3
		}
		if r.IntN(one) > 0 {
			return faultNone
		}
		what := all[r.IntN(len(all))]
		if what == faultCorrupt || what == faultForget {
			if harm++; harm > 2 {
				return faultNone
			}
		}
		return what
	}
}

func (s *traceServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 16<<20))
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	what := faultNone
	if s.fault != nil {
		what = s.fault(r)
	}
	if s.status != "" {
		w.Header().Set("Job-Status", s.status)
	}
	if s.interval != "" {
		w.Header().Set("Trace-Update-Interval", s.interval)
	}
	switch what {
	case faultBusy:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case faultCut:
		panic(http.ErrAbortHandler)
	case faultForget:
		s.log = s.log[:len(s.log)/2]
	case faultCorrupt:
		if n := len(s.log); n > 0 {
			s.log[n/2] ^= 1
		}
	}
	switch r.Method + " " + r.URL.Path {
	case "PATCH /trace":
		s.patch(w, r, body, what)
	case "PUT /", "PUT ":
		s.put(w, body, what)
	default:
		http.NotFound(w, r)
	}
	if what == faultLost {
		panic(http.ErrAbortHandler)
	}
}

// patch appends to the log what belongs at its end.
func (s *traceServer) patch(w http.ResponseWriter, r *http.Request, body []byte, what fault) {
	var start, end int
	if n, err := fmt.Sscanf(r.Header.Get("Content-Range"), "%d-%d", &start, &end); n != 2 || err != nil || end-start+1 != len(body) {
		http.Error(w, "Content-Range does not fit", http.StatusBadRequest)
		return
	}
	status := http.StatusRequestedRangeNotSatisfiable
	if start == len(s.log) {
		if what == faultShort {
			body = body[:len(body)/2]
		}
		s.log = append(s.log, body...)
		status = http.StatusAccepted
	}
	if n := len(s.log); n > s.shown {
		if s.seen != nil {
			s.seen(s.log[s.shown:])
		}
		s.shown = n
	}
	w.Header().Set("Range", fmt.Sprintf("0-%d", len(s.log)))
	w.WriteHeader(status)
}

// put hears how the job stands, and at its end looks whether the log is right.
func (s *traceServer) put(w http.ResponseWriter, body []byte, what fault) {
	var u update
	if err := json.Unmarshal(body, &u); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if u.State == "running" {
		return
	}
	s.asked++
	switch {
	case u.Bytes != int64(len(s.log)) || u.Checksum != fmt.Sprintf("sha256:%x", sha256.Sum256(s.log)):
		s.log = nil
		w.WriteHeader(http.StatusPreconditionFailed)
	case what == faultLater: // as a server that moves the log elsewhere
		w.WriteHeader(http.StatusAccepted)
	default:
		s.state, s.code = u.State, u.Code
	}
}
