package etcdstore

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ambit-go/ambit/locks"
)

// classed says of which sort the error of a request is. One that the server will never carry out
// is invalid; after any other it may have been carried out or not: the client repeats no
// transaction that it has sent.
func classed(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	switch code(err) {
	case codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument, codes.Unimplemented:
		return locks.Invalid(err)
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = errors.Join(cause, err)
	}
	return locks.Unavailable(err)
}

// code returns the code of gRPC of err, which may be an answer of etcd or an error of gRPC.
func code(err error) codes.Code {
	var answer rpctypes.EtcdError
	if errors.As(rpctypes.Error(err), &answer) {
		return answer.Code()
	}
	return status.Code(err)
}

// noLease says whether err is that of a lease which is over. Nothing was done then.
func noLease(err error) bool {
	return err != nil && errors.Is(rpctypes.Error(err), rpctypes.ErrLeaseNotFound)
}
