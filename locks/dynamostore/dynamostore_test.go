package dynamostore_test

import (
	"context"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/dynamostore"
	"github.com/ambit-go/ambit/locks/lockstest"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

func TestMain(m *testing.M) {
	_ = os.Setenv("AWS_ACCESS_KEY_ID", "id") // also for the processes of TestMatrix
	_ = os.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	lockstest.Main()
	goleak.VerifyTestMain(servers.Ending{M: m})
}

func store(t testing.TB, s *servers.Server) *dynamostore.Store {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return over(t, s, transport)
}

// over is a store whose requests go by way of transport.
func over(t testing.TB, s *servers.Server, transport http.RoundTripper) *dynamostore.Store {
	made, err := dynamostore.New(context.Background(), clientOver(s, transport), "locks")
	require.NoError(t, err)
	return made
}

func client(t testing.TB, s *servers.Server) *dynamodb.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return clientOver(s, transport)
}

func clientOver(s *servers.Server, transport http.RoundTripper) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://" + s.Address), HTTPClient: &http.Client{Transport: transport},
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
}

func TestTheSuite(t *testing.T) {
	server := servers.Dynalite(t)
	lockstest.Run(t, func(t testing.TB) locks.Store { return store(t, server) })
}

// slow keeps the next write on its way for so long that the server's clock is beyond what
// was thought possible.
type slow struct {
	http.RoundTripper
	next atomic.Bool
}

func (s *slow) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".PutItem") && s.next.CompareAndSwap(true, false) {
		time.Sleep(2100 * time.Millisecond)
	}
	return s.RoundTripper.RoundTrip(r)
}

// TestAStepThatIsWrittenTwiceIsOneStep: its first request would meet the size that its
// second has written.
func TestAStepThatIsWrittenTwiceIsOneStep(t *testing.T) {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	on := &slow{RoundTripper: transport}
	s := over(t, servers.Dynalite(t), on)
	name := locks.Name{Tenant: "acme", Key: "s"}
	permit := func(id string, size int) locks.Request {
		return locks.Request{ID: id, Version: id, Kind: locks.Semaphore, Size: size, Permits: 1, Lease: time.Minute}
	}
	_, err := s.Acquire(t.Context(), name, []locks.Request{permit("a", 2), permit("b", 2)})
	require.NoError(t, err)
	strict, grow := permit("c", 2), permit("d", 3)
	strict.Strict, grow.Resize = true, true
	on.next.Store(true)
	turn, err := s.Acquire(t.Context(), name, []locks.Request{strict, grow})
	require.NoError(t, err)
	require.False(t, on.next.Load())
	require.NoError(t, turn.Answers[0].Err)
	require.Equal(t, 3, turn.Size)
}

// TestATableThatCannotBeIsInvalid: to ask again does not help.
func TestATableThatCannotBeIsInvalid(t *testing.T) {
	server := servers.Dynalite(t)
	_, err := locks.Open(t.Context(), "dynamodb:ab?region=us-east-1&endpoint=http://"+server.Address)
	require.ErrorIs(t, err, locks.ErrValidation)
	require.NotErrorIs(t, err, locks.ErrUnavailable)
}

// puts counts the writes that a store sends.
type puts struct {
	http.RoundTripper
	n atomic.Int64
}

func (p *puts) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".PutItem") {
		p.n.Add(1)
	}
	return p.RoundTripper.RoundTrip(r)
}

// TestWhoWaitsLooksMoreOftenThanItWrites: a write costs more than a read, and comes between the steps of the holder.
func TestWhoWaitsLooksMoreOftenThanItWrites(t *testing.T) {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	on := &puts{RoundTripper: transport}
	s := over(t, servers.Dynalite(t), on)
	name := locks.Name{Tenant: "acme", Key: "m"}
	ask := func(id string) locks.Answer {
		turn, err := s.Acquire(t.Context(), name, []locks.Request{{ID: id, Version: id, Kind: locks.Mutex, Lease: time.Minute, Wait: true}})
		require.NoError(t, err)
		return turn.Answers[0]
	}
	require.True(t, ask("holder").Granted)
	begin, before := time.Now(), on.n.Load()
	for range 50 {
		require.False(t, ask("waiter").Granted)
	}
	written := on.n.Load() - before
	require.Positive(t, written)
	require.LessOrEqual(t, written, 2+int64(time.Since(begin)/(locks.WaiterLife/12)))
}
