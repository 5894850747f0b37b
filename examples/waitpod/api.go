package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ambit-go/ambit/examples/internal/retryafter"
)

// The phases that decide. There are others, which pass.
const (
	running   = "Running"
	succeeded = "Succeeded"
	failed    = "Failed"
)

// A status is what the API says about a pod, as far as we care.
type status struct {
	Phase  string
	Reason string // for that phase, if there is one
}

func (s status) String() string {
	if s.Reason == "" {
		return word(s.Phase)
	}
	return word(s.Phase) + " (" + word(s.Reason) + ")"
}

// word is a text of the server as it can be printed: in one line, as each phase
// is, which no terminal takes for a command, and not too long.
func word(s string) string {
	const most = 200
	if len(s) > most {
		s = s[:most] + "..."
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// UnmarshalJSON finds the status in a pod. The reason is that of the pod, or that
// of a container which is kept from starting: ImagePullBackOff, say.
func (s *status) UnmarshalJSON(data []byte) error {
	var pod struct {
		Status struct {
			Phase, Reason     string
			ContainerStatuses []struct {
				State struct{ Waiting struct{ Reason string } }
			}
		}
	}
	if err := json.Unmarshal(data, &pod); err != nil {
		return err
	}
	*s = status{pod.Status.Phase, pod.Status.Reason}
	for _, c := range pod.Status.ContainerStatuses {
		if s.Reason == "" {
			s.Reason = c.State.Waiting.Reason
		}
	}
	return nil
}

// An answer is what came of a request.
type answer struct {
	status
	code     string        // "200 OK"
	after    time.Duration // when to ask again at the earliest, counted from now
	interval time.Duration // between requests from now on
}

// A passingError may be another one, or none, the next time.
type passingError struct{ error }

func (e *passingError) Unwrap() error { return e.error }

// maxPod is how much is read of an answer, in bytes.
const maxPod = 4 << 20

// newClient returns a client that gives up on a request after a time. A redirect
// is an answer to it, and a final one: no API has its pods elsewhere, and where
// it leads to may be a page to log in, or a circle.
func newClient(transport http.RoundTripper, timeout time.Duration) *http.Client {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: transport, Timeout: timeout, CheckRedirect: stay}
}

// ask asks for the pod once. With an error the answer still says when to ask
// again.
func ask(ctx context.Context, client *http.Client, address string) (a answer, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return a, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	switch {
	case err != nil && neverBetter(err):
		return a, why(client, err)
	case err != nil:
		return a, &passingError{why(client, err)}
	}
	defer func() { _ = response.Body.Close() }()
	a.code = response.Status
	a.after, a.interval = retryafter.Of(response.Header, time.Now()), pollInterval(response.Header)
	switch code := response.StatusCode; {
	case code == http.StatusOK:
		a.status, err = readPod(response.Body)
		return a, err
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= 500:
		return a, &passingError{errors.New(response.Status)}
	default:
		return a, errors.New(response.Status)
	}
}

// neverBetter reports whether a request without an answer will not have one the
// next time either: whoever is there is not to be trusted, or speaks no TLS.
func neverBetter(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.Is(err, http.ErrSchemeMismatch)
}

// readPod reads a pod. What breaks off may come as a whole the next time; what
// is no pod will never be one.
func readPod(body io.Reader) (s status, err error) {
	data, err := io.ReadAll(io.LimitReader(body, maxPod+1))
	switch {
	case err != nil:
		return s, &passingError{fmt.Errorf("reading the answer: %w", err)}
	case len(data) > maxPod:
		return s, fmt.Errorf("the answer is not a pod: it has more than %d MB", maxPod>>20)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("the answer is not a pod: %w", err)
	}
	if s.Phase == "" {
		return s, errors.New("the answer is not a pod: it has no status.phase")
	}
	return s, nil
}

// why is an error of the client without the URL: its reader has given it to us.
func why(client *http.Client, err error) error {
	var e *url.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %v", client.Timeout)
	case errors.As(err, &e):
		return e.Err
	}
	return err
}

// pollInterval returns how long the server wants between requests, 0 if it does
// not say. The header is one that several APIs have, GitHub's for one.
func pollInterval(h http.Header) time.Duration {
	d, _ := retryafter.Seconds(h.Get("X-Poll-Interval"))
	return d
}
