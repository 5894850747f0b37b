package adopting

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/service"
)

func main() { service.Main(run, service.Grace(20*time.Second)) }

func run(ctx context.Context) error {
	l, err := net.Listen("tcp", os.Getenv("LISTEN"))
	if err != nil {
		return err
	}
	fmt.Println("listening on", l.Addr())
	return service.Run(ctx, []service.Service{
		{Name: "clean-up", Run: cleanUp},
		service.HTTP("web", l, &http.Server{Handler: http.HandlerFunc(hello)}),
	})
}

func hello(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/ready" && !service.IsReady(r.Context()) {
		http.Error(w, "draining", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "hello")
}

// cleanUp runs until the server has been drained.
func cleanUp(ctx context.Context) error {
	for async.Sleep(ctx, time.Minute) == nil {
		fmt.Println("clean")
	}
	return nil
}
