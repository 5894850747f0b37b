package etcdkv

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ambit-go/ambit/kvqueue"
)

// kind says what the caller of Commit learns from an error.
func kind(err error) (kinds []string) {
	for name, is := range map[string]error{"conflict": kvqueue.ErrConflict, "full": kvqueue.ErrNoSpace, "unknown": kvqueue.ErrUnknown} {
		if errors.Is(err, is) {
			kinds = append(kinds, name)
		}
	}
	if errors.As(err, new(*kvqueue.InvalidError)) {
		kinds = append(kinds, "invalid")
	}
	return kinds
}

func TestWhatIsNotKnownIsToldFromWhatWasNotDone(t *testing.T) {
	lost := status.Error(codes.Unavailable, "error reading from server: EOF")
	for name, c := range map[string]struct {
		err  error
		sent bool
		want []string
	}{
		"the connection broke":                 {lost, true, []string{"unknown"}},
		"there was no connection":              {lost, false, nil},
		"leader changed":                       {rpctypes.ErrLeaderChanged, true, []string{"unknown"}},
		"timeout of the member":                {rpctypes.ErrTimeoutDueToLeaderFail, true, []string{"unknown"}},
		"member stopped":                       {rpctypes.ErrStopped, true, []string{"unknown"}},
		"something inside of gRPC":             {status.Error(codes.Internal, "stream terminated"), true, []string{"unknown"}},
		"cancelled":                            {context.Canceled, true, []string{"unknown"}},
		"too many requests":                    {rpctypes.ErrTooManyRequests, true, nil},
		"permission denied":                    {rpctypes.ErrPermissionDenied, true, nil},
		"too large":                            {rpctypes.ErrRequestTooLarge, true, []string{"invalid"}},
		"too large for the client":             {status.Error(codes.ResourceExhausted, "trying to send message larger than max"), true, []string{"invalid"}},
		"one key twice":                        {rpctypes.ErrDuplicateKey, true, []string{"invalid"}},
		"the lease of a key has ended":         {rpctypes.ErrLeaseNotFound, true, []string{"conflict"}},
		"the quota, as the client sees it":     {rpctypes.ErrNoSpace, true, []string{"full", "unknown"}},
		"the quota, as gRPC sees it":           {rpctypes.ErrGRPCNoSpace, true, []string{"full", "unknown"}},
		"a lease that gRPC does not see":       {rpctypes.ErrGRPCLeaseNotFound, true, []string{"conflict"}},
		"leader changed, as gRPC sees it":      {rpctypes.ErrGRPCLeaderChanged, true, []string{"unknown"}},
		"too many requests, as gRPC sees them": {rpctypes.ErrGRPCRequestTooManyRequests, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			assert.ElementsMatch(t, c.want, kind(outcome(t.Context(), c.err, c.sent)))
		})
	}
}

func TestTheDeadlineOfACallIsNotThatOfItsCaller(t *testing.T) {
	s := &Store{timeout: time.Nanosecond}
	ctx, cancel := s.bound(t.Context())
	defer cancel()
	<-ctx.Done()
	err := plain(ctx, "read", context.DeadlineExceeded)
	assert.NotErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "etcd did not answer within 1ns")

	caller, cancelCaller := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancelCaller()
	s.timeout = time.Hour
	ctx, cancel = s.bound(caller)
	defer cancel()
	<-ctx.Done()
	assert.ErrorIs(t, plain(ctx, "read", status.Error(codes.DeadlineExceeded, "")), context.DeadlineExceeded)
	assert.ErrorIs(t, outcome(ctx, status.Error(codes.DeadlineExceeded, ""), true), kvqueue.ErrUnknown)
}

// A member that is gone is said to be, by every call, when its ctx ends at the latest.
func TestACallThatNobodyAnswersSaysWhy(t *testing.T) {
	// A port that no program gets by chance, and nobody listens on.
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:1"}, Logger: zap.NewNop()})
	require.NoError(t, err)
	defer client.Close()
	s := New(client, Timeout(time.Hour))
	s.asking = time.Minute
	for name, call := range map[string]func(ctx context.Context) error{
		"read":    func(ctx context.Context) error { _, _, err := s.Read(ctx); return err },
		"commit":  func(ctx context.Context) error { _, err := s.Commit(ctx, nil, nil); return err },
		"session": func(ctx context.Context) error { _, err := s.Session(ctx, time.Second); return err },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), time.Second)
			defer stop()
			err := call(ctx)
			assert.ErrorContains(t, err, "refused")
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		})
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Nanosecond)
	defer stop()
	<-ctx.Done()
	assert.ErrorContains(t, plain(ctx, "read", context.DeadlineExceeded), "etcd did not answer")
}
