package cookbook

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// A site is served for a test. Its requests last until they are released, or
// until their ctx is done.
type site struct {
	url     string
	entered chan struct{} // a request has come
	release chan struct{}
	open    chan struct{} // the store runs
	storing atomic.Bool   // and has not ended
	alone   atomic.Bool   // a request has found no store
	cut     atomic.Bool   // a request was cancelled
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.entered <- struct{}{}
	select {
	case <-s.release:
	case <-r.Context().Done():
		s.cut.Store(true)
		return
	}
	if !s.storing.Load() {
		s.alone.Store(true)
	}
	_, _ = io.WriteString(w, "served")
}

func (s *site) store(ctx context.Context) error {
	s.storing.Store(true)
	close(s.open)
	defer s.storing.Store(false)
	<-ctx.Done()
	return nil
}

// serveOne serves s, has a request under way when it tells the server to stop, and
// returns the answer and the error of Serve.
func serveOne(t *testing.T, s *site, grace time.Duration, drained func()) (answer string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.url, s.entered, s.release, s.open = "http://"+l.Addr().String(), make(chan struct{}), make(chan struct{}), make(chan struct{})
	test := asynctest.Context(t)
	ctx, stop := context.WithCancelCause(test)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	server := async.Start(test, func(context.Context) error { return Serve(ctx, l, s, s.store, grace) })
	<-s.open
	request := async.Execute(test, func(ctx context.Context) (string, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
		if err != nil {
			return "", err
		}
		response, err := client.Do(r)
		if err != nil {
			return "", err
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		return string(body), err
	})
	<-s.entered
	stop(errUser)
	drained()
	answer, _ = request.Join(test)
	_, err = server.Join(test)
	return answer, err
}

func TestARequestThatWasAcceptedIsServedBeforeItsStoreIsStopped(t *testing.T) {
	s := new(site)
	answer, err := serveOne(t, s, time.Hour, func() { close(s.release) })
	require.NoError(t, err)
	require.Equal(t, "served", answer)
	require.False(t, s.alone.Load())
	require.False(t, s.storing.Load())
}

func TestARequestThatTakesLongerThanTheGraceIsCancelled(t *testing.T) {
	s := new(site)
	_, err := serveOne(t, s, 50*time.Millisecond, func() {})
	require.ErrorIs(t, err, errUser)
	require.True(t, s.cut.Load())
	require.False(t, s.storing.Load())
}
