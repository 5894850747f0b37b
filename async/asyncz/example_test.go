package asyncz_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/async/asyncz"
	"github.com/ambit-go/ambit/async/record"
)

// show prints what page answers curl, less places, IDs and the first line.
func show(page http.Handler) {
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	_, text, _ := strings.Cut(w.Body.String(), "\n")
	for line := range strings.Lines(text) {
		words := slices.DeleteFunc(strings.Fields(line)[1:], func(w string) bool { return strings.Contains(w, ".go:") })
		fmt.Println(strings.Join(words, " "))
	}
}

func Example() {
	mux := http.NewServeMux()
	mux.Handle("/debug/async/", http.StripPrefix("/debug/async", asyncz.Handler()))
	server := &http.Server{Addr: "127.0.0.1:6060", Handler: mux}
	if err := server.ListenAndServe(); err != nil {
		log.Fatal(err)
	}
}

func ExampleHandler() {
	ctx, check := asynctest.Root(context.Background())
	running, end := make(chan struct{}), make(chan struct{})
	async.Detach(ctx, "mail", func(context.Context) error { close(running); <-end; return nil })
	<-running
	page := asyncz.Handler(asyncz.Of(ctx))
	show(page)
	close(end)
	fmt.Println(check())
	// Output:
	// mail detached running
	// <nil>
}

func ExampleOf() {
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		show(asyncz.Handler(asyncz.Of(ctx)))
		return nil
	}, async.Name("orders"))
	fmt.Println(err)
	// Output:
	// orders scope running
	// <nil>
}

func ExampleTexts() {
	page := asyncz.Handler(asyncz.Texts())
	http.Handle("/with-texts/", http.StripPrefix("/with-texts", page))
}

func ExampleRecorder() {
	rec := record.New()
	page := asyncz.Handler(asyncz.Recorder(rec))
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		async.Go(ctx, func(context.Context) error { return nil }, async.Name("fetch"))
		return nil
	}, async.Observe(rec))
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?format=recording", nil))
	recording, _ := record.Open(w.Body)
	fmt.Println(recording.Events[0].Task, recording.Events[0].Outcome, err)
	// Output: fetch ok <nil>
}

func ExampleNoStacks() {
	page := asyncz.Handler(asyncz.NoStacks())
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?stacks=1", nil))
	fmt.Print(w.Code, " ", w.Body)
	// Output: 403 stacks are not shown here: asyncz.NoStacks
}

func ExampleLink() {
	page := asyncz.Handler(asyncz.Link("pprof", "/debug/pprof/"), asyncz.Link("tasks", "/tasks/"))
	http.Handle("/with-links/", http.StripPrefix("/with-links", page))
}

func ExampleAnyHost() {
	page := asyncz.Handler(asyncz.AnyHost()) // a proxy on this machine asks for a password
	http.Handle("/behind-a-proxy/", http.StripPrefix("/behind-a-proxy", page))
}

func ExamplePage_Run() {
	page := asyncz.Handler()
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		async.Go(ctx, page.Run, async.Daemon(), async.Name("ages"))
		return nil // what the program does
	})
	fmt.Println(err)
	// Output: <nil>
}
