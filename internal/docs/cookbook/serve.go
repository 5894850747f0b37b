package cookbook

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/ambit-go/ambit/service"
)

// Serve serves until ctx is done, and then drains: it accepts no more requests,
// waits for those that it has, and stops store, which they use, after them. A request that takes
// longer than grace is cancelled. A drain that loses nothing is no error.
func Serve(
	ctx context.Context, l net.Listener, handler http.Handler, store func(ctx context.Context) error, grace time.Duration,
) error {
	return service.Run(ctx, []service.Service{
		{Name: "store", Run: store},
		service.HTTP("api", l, &http.Server{Handler: handler}),
	}, service.Grace(grace))
}
