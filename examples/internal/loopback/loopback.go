// Package loopback serves HTTP to this machine, in a scope.
package loopback

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/ambit-go/ambit/async"
)

// Serve answers requests on a free port of the loopback interface until the
// scope of ctx needs it no longer, and returns the URL of it, without a slash at
// the end. The scope has ended only when the server has: requests that are being
// answered then have their context cancelled.
//
// http.Server.Serve does not look at a context; an abort hook is what stops it.
func Serve(ctx context.Context, handler http.Handler) (url string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	async.Go(ctx, func(context.Context) error {
		err := server.Serve(listener)
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return err
	}, async.Name("server"), async.Daemon(), async.OnAbort(func(context.Context, error) error {
		return server.Close()
	}))
	return "http://" + listener.Addr().String(), nil
}
