package byhand

import (
	"context"
	"log"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

func Serve(ctx context.Context, l net.Listener, handler http.Handler, store func(ctx context.Context) error) error {
	server := &http.Server{Handler: handler}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		go func() {
			<-ctx.Done()
			stop, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			if err := server.Shutdown(stop); err != nil {
				log.Print(err)
			}
		}()
		return server.Serve(l)
	})
	g.Go(func() error { return store(ctx) })
	return g.Wait()
}
