package etcdkv

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/ambit-go/ambit/kvqueue"
)

// The answers of etcd that mean something of their own here.
var (
	errCompacted     = rpctypes.ErrCompacted
	errLeaseNotFound = rpctypes.ErrLeaseNotFound
	errNoSpace       = rpctypes.ErrNoSpace
)

// makeRoom is what to do about a cluster that is full.
const makeRoom = "compact and defragment it, then clear its alarm"

// is reports whether err is one answer of etcd.
func is(err, answer error) bool { return err != nil && errors.Is(rpctypes.Error(err), answer) }

// A sender notes whether a transaction was sent to a member: what never was cannot have been
// done, whatever the error is.
type sender struct{ pb.KVClient }

type peerKey struct{}

// Txn tells the member to the *peer.Peer in ctx, if a stream to it was opened.
func (s sender) Txn(ctx context.Context, in *pb.TxnRequest, options ...grpc.CallOption) (*pb.TxnResponse, error) {
	if p, ok := ctx.Value(peerKey{}).(*peer.Peer); ok {
		options = append(options[:len(options):len(options)], grpc.Peer(p))
	}
	return s.KVClient.Txn(ctx, in, options...)
}

// plain is the error of a call that has changed nothing, or whose change does not matter. It
// matches the error of ctx only if that of the caller has ended.
func plain(ctx context.Context, what string, err error) error {
	var late errTimeout
	switch {
	case err == nil:
		return nil
	case errors.As(context.Cause(ctx), &late):
		return fmt.Errorf("etcdkv: %s: %w%s", what, late, broken(ctx))
	case ctx.Err() != nil:
		return fmt.Errorf("etcdkv: %s: etcd did not answer%s%s: %w", what, waited(ctx), broken(ctx), ctx.Err())
	case is(err, errNoSpace):
		return fmt.Errorf("etcdkv: %s: %w: %s", what, kvqueue.ErrNoSpace, makeRoom)
	default:
		return fmt.Errorf("etcdkv: %s: %w", what, err)
	}
}

// A call is what the context of one knows of it.
type call struct {
	began  time.Time
	conn   *grpc.ClientConn // nil: there is none
	asking time.Duration    // that of the store
}

type callKey struct{}

// waited is for how long a call has gone on whose context this is.
func waited(ctx context.Context) string {
	c, ok := ctx.Value(callKey{}).(call)
	if !ok {
		return ""
	}
	return " for " + time.Since(c.began).Round(time.Millisecond).String()
}

// broken says what is wrong with the connections of a client that has none, such as that they are
// refused. The client tries again until the time is over, and then says that alone; a request that is
// not tried again is answered at once.
func broken(ctx context.Context) string {
	c, ok := ctx.Value(callKey{}).(call)
	if !ok || c.conn == nil || c.conn.GetState() == connectivity.Ready {
		return ""
	}
	ask, stop := context.WithTimeout(context.WithoutCancel(ctx), c.asking)
	defer stop()
	_, err := pb.NewKVClient(c.conn).Range(ask, &pb.RangeRequest{Key: []byte{0}, Serializable: true})
	if code(err) != codes.Unavailable {
		return ""
	}
	return ": " + status.Convert(err).Message()
}

// outcome is the error of a transaction, which was sent or not.
func outcome(ctx context.Context, err error, sent bool) error {
	const what = "commit"
	switch {
	case !sent:
		return plain(ctx, what, err)
	case is(err, errLeaseNotFound):
		return fmt.Errorf("etcdkv: the session of a key has ended: %w", kvqueue.ErrConflict)
	case is(err, errNoSpace):
		return fullError{}
	case refused(err) && tooLarge(err):
		return &kvqueue.InvalidError{What: "transaction", Why: fmt.Sprintf("etcd does not take it: %v", err)}
	case refused(err):
		return fmt.Errorf("etcdkv: %s: %w", what, err)
	default:
		return fmt.Errorf("%w: %w", kvqueue.ErrUnknown, plain(ctx, what, err))
	}
}

// A fullError is the answer to a transaction that has reached the quota, which is done and refused
// nevertheless, and to those that come later.
type fullError struct{}

func (fullError) Error() string { return fmt.Sprintf("etcdkv: %v: %s", kvqueue.ErrNoSpace, makeRoom) }

func (fullError) Is(target error) bool {
	return target == kvqueue.ErrNoSpace || target == kvqueue.ErrUnknown
}

// refused reports whether a member says by err that it has not done, and will not do, what it
// was asked for.
func refused(err error) bool {
	switch code(err) {
	case codes.InvalidArgument, codes.ResourceExhausted, codes.FailedPrecondition, codes.PermissionDenied,
		codes.Unauthenticated, codes.Unimplemented:
		return true
	}
	return false
}

func tooLarge(err error) bool {
	return code(err) == codes.ResourceExhausted && !is(err, rpctypes.ErrTooManyRequests) ||
		is(err, rpctypes.ErrRequestTooLarge) || is(err, rpctypes.ErrTooManyOps) || is(err, rpctypes.ErrDuplicateKey) || is(err, rpctypes.ErrEmptyKey)
}

// code returns the code of gRPC of err, which may be an answer of etcd or an error of gRPC.
func code(err error) codes.Code {
	var answer rpctypes.EtcdError
	if errors.As(rpctypes.Error(err), &answer) {
		return answer.Code()
	}
	return status.Code(err)
}

// passing reports whether the same read may succeed a little later.
func passing(err error) bool { return code(err) == codes.Unavailable }
