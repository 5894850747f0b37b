package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A probe asks once whether a service is up, and says what it has seen: the phase of
// a pod, say. An error of it is final, unless it is an async.Again.
type probe func(ctx context.Context) (seen string, up bool, err error)

// portProbe connects, and says nothing: a port that accepts has shown that it is there.
// A port without a listener is no error of the wait.
func portProbe(address string) probe {
	return func(ctx context.Context) (string, bool, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return "", false, async.Again(err)
		}
		return "", true, conn.Close()
	}
}

// podClient takes a redirect for an answer, and a final one: no API has its pods
// elsewhere, and where it leads to may be a page to log in, or a circle.
var podClient = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// podProbe asks an HTTP API for the phase of a pod. A trouble that may pass is an Again: another
// phase, 408, 429, 5xx, a connection that breaks. Any other is final: a pod that has
// ended, any other status, no pod at all.
func podProbe(address string) probe {
	return func(ctx context.Context) (phase string, up bool, err error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return "", false, err
		}
		response, err := podClient.Do(request)
		if err != nil {
			return "", false, async.Again(err)
		}
		defer func() { _ = response.Body.Close() }()
		again := async.Again
		if seconds, _ := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 31); seconds > 0 {
			again = func(err error) error { return async.AgainAfter(time.Duration(seconds)*time.Second, err) }
		}
		status := fmt.Errorf("%.100q", response.Status) // quoted, as all that the server says
		switch code := response.StatusCode; {
		case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= 500:
			return "", false, again(status)
		case code != http.StatusOK:
			return "", false, status
		}
		return readPod(response.Body, again)
	}
}

// readPod reads the phase of a pod, and the reason for it: that of the pod, or of a container
// which is kept from starting, such as ImagePullBackOff.
func readPod(body io.Reader, again func(error) error) (phase string, up bool, err error) {
	var pod struct {
		Status struct {
			Phase, Reason     string
			ContainerStatuses []struct {
				State struct{ Waiting struct{ Reason string } }
			}
		}
	}
	err = json.NewDecoder(io.LimitReader(body, 4<<20)).Decode(&pod)
	s := pod.Status
	switch {
	case errors.As(err, new(*json.SyntaxError)), err == nil && s.Phase == "":
		return "", false, errors.New("the answer is not a pod")
	case err != nil: // it has broken off
		return "", false, again(err)
	}
	for _, c := range s.ContainerStatuses {
		s.Reason = cmp.Or(s.Reason, c.State.Waiting.Reason)
	}
	phase = fmt.Sprintf("%.200q", strings.TrimSpace(s.Phase+" "+s.Reason))
	switch s.Phase {
	case "Running":
		return phase, true, nil
	case "Succeeded", "Failed":
		return "", false, errors.New("the pod has ended: " + phase)
	}
	return phase, false, again(nil)
}
