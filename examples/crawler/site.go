package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/ambit-go/ambit/async"
)

// serve serves a site on the loopback interface, until the scope of ctx has nothing
// else to do, and returns its address. Serve looks at no ctx: the abort hook is what
// ends it.
func serve(ctx context.Context) (*url.URL, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &http.Server{Handler: http.HandlerFunc(site)}
	async.Go(ctx, func(context.Context) error {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}, async.Name("site"), async.Daemon(), async.OnAbort(func(context.Context, error) error { return s.Close() }))
	return &url.URL{Scheme: "http", Host: l.Addr().String(), Path: "/"}, nil
}

// site is a tree of pages, in which one never comes and one link leads nowhere.
func site(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	switch {
	case path == "/3/":
		<-r.Context().Done()
		return
	case path == "/nowhere" || len(path) > len("/1/2/3/"):
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html")
	fmt.Fprintf(w, "<title>%s</title>\n", path)
	for n := range 4 {
		fmt.Fprintf(w, "<a href='%d/'>further</a>\n", n+1)
	}
	fmt.Fprint(w, "<a href='/'>home</a> <a href='/nowhere'>out</a>\n")
}
