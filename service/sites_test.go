package service_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/service"
)

// These are faults of the long-lived parts of Woodpecker and of the agent of
// Buildkite, each shown not to happen here. Those in which a whole program takes
// part are in sites_unix_test.go.

// Its main returned when Serve did, which is when Shutdown begins: what was still
// being answered was cut off.
func TestWoodpeckerReturnedBeforeItsShutdown(t *testing.T) {
	inside := make(chan struct{})
	var answered atomic.Bool
	s := serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(inside)
		<-service.Draining(r.Context())
		time.Sleep(time.Millisecond) // Serve has returned long ago
		answered.Store(true)
	})})
	client := newClient(t)
	answer := async.Start(s.ctx, func(context.Context) error { _, err := get(client, s.url); return err })
	<-inside
	s.stop(errStop)
	require.NoError(t, s.wait())
	assert.True(t, answered.Load())
	_, err := answer.Join(s.ctx)
	require.NoError(t, err)
}

// With TLS a stop that was asked for was an error, as ErrServerClosed was looked for in one
// of two branches only.
func TestWoodpeckerTookACleanStopOfTLSForAFailure(t *testing.T) {
	l := tls.NewListener(listen(t), &tls.Config{Certificates: []tls.Certificate{certificate(t)}, NextProtos: []string{"h2", "http/1.1"}})
	ctx := asynctest.Context(t)
	outer, stop := context.WithCancelCause(ctx)
	run := async.Start(ctx, func(context.Context) error {
		return service.Run(outer, []service.Service{service.HTTP("https", l, &http.Server{
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }),
		})})
	})
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	body, err := get(&http.Client{Transport: transport}, "https://"+l.Addr().String())
	require.NoError(t, err)
	assert.Equal(t, "HTTP/2.0", body)
	stop(errStop)
	_, err = run.Join(ctx)
	require.NoError(t, err)
}

func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// The failure of the server for metrics was assigned to another variable of the same name,
// and lost.
func TestWoodpeckerLostTheFailureOfItsMetricsServer(t *testing.T) {
	metrics := listen(t)
	require.NoError(t, metrics.Close())
	err := service.Run(asynctest.Context(t), []service.Service{
		service.HTTP("main", listen(t), &http.Server{}),
		service.HTTP("metrics", metrics, &http.Server{}),
	})
	require.ErrorIs(t, err, net.ErrClosed)
	assert.Contains(t, err.Error(), "service metrics: ")
}

// The cause that stopped the program was printed as the address of a channel.
func TestWoodpeckerPrintedTheChannelInsteadOfTheSignal(t *testing.T) {
	assert.EqualError(t, &service.SignalError{Signal: syscall.SIGTERM}, "stopped by signal: terminated")
}

// The agent took itself off the list of its server while its runners still reported what
// they had done. The service that is stopped last is started first.
func TestWoodpeckerUnregisteredWhileRunnersReported(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		registered, reported := false, false
		time.AfterFunc(time.Second, func() { stop(errStop) })
		require.NoError(t, service.Run(ctx, []service.Service{
			{Name: "agent", Startup: time.Minute, Run: func(ctx context.Context) error {
				registered = true
				service.Ready(ctx)
				<-ctx.Done()
				registered = false
				return nil
			}},
			{Name: "runner", Run: func(ctx context.Context) error {
				<-service.Draining(ctx)
				time.Sleep(time.Second)
				reported = registered
				return nil
			}, Drain: func(context.Context) error { return nil }},
		}))
		assert.True(t, reported)
		assert.False(t, registered)
	})
}

// A job that ignored its stop kept the agent for ever, and nothing said which.
func TestBuildkiteWaitedForEverForWhatIgnoresItsStop(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		release := make(chan struct{})
		time.AfterFunc(time.Second, func() { stop(errStop) })
		err := service.Run(ctx, []service.Service{{Name: "job", Run: func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error {
				<-release
				return nil
			}, async.Name("hook"))
			<-ctx.Done()
			return nil
		}}})
		var left *async.StragglerError
		require.ErrorAs(t, err, &left)
		require.Len(t, left.Left, 1)
		assert.Equal(t, "hook", left.Left[0].Task)
		close(release)
		synctest.Wait()
	})
}
