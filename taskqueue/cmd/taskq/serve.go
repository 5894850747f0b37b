package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/service"
	"github.com/ambit-go/ambit/taskqueue/page"
)

func serveCommand(f *flag.FlagSet) func(context.Context, *env) error {
	listen := f.String("listen", "127.0.0.1:8080", "the `address` of the page; port 0 takes a free one")
	aliases := f.String("host", "", "`names`, with commas between them, by which the page is reached through a proxy")
	acts := f.Bool("act", false, "the page may retry, run, cancel and delete tasks, and pause queues, for everybody who reaches it")
	return func(ctx context.Context, e *env) error {
		names, err := e.named(ctx)
		if err != nil {
			return err
		}
		l, err := listenOn(*listen)
		if err != nil {
			return err
		}
		opts := []page.Option{page.Queues(names...), page.Name(storeName(e.url))}
		if *acts {
			opts = append(opts, page.AllowActions())
		}
		p := page.New(e.store, opts...)
		allowed := hosts(l.Addr(), *aliases)
		if err := e.greet(l.Addr(), *acts); err != nil {
			return errors.Join(err, l.Close())
		}
		return service.Run(ctx, []service.Service{
			service.HTTP("page", l, &http.Server{
				Handler:           guard(p, allowed),
				ReadHeaderTimeout: 10 * time.Second,
				ReadTimeout:       10 * time.Second,
				WriteTimeout:      time.Minute,
				IdleTimeout:       2 * time.Minute,
				MaxHeaderBytes:    64 << 10,
			}),
		})
	}
}

// listenOn listens on an address.
func listenOn(address string) (net.Listener, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, usagef("-listen %s is no address: write it as 127.0.0.1:8080, or as :8080 for all of this machine's addresses", address)
	}
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w: another program has it; choose another with -listen, port 0 takes a free one", err)
	}
	return l, err
}

// greet says where the page is, and who can see it.
func (e *env) greet(a net.Addr, acts bool) error {
	if !isLoopback(a) {
		may := ""
		if acts {
			may = ", and can delete their tasks"
		}
		e.notef("warning: there is no password: everybody who reaches %s sees the ids, errors and payloads of all queues%s. Without -listen only this machine does", a, may)
	}
	url := "http://" + a.String() + "/"
	if e.json {
		return json.NewEncoder(e.stdout).Encode(map[string]string{"url": url})
	}
	_, err := fmt.Fprintf(e.stdout, "the page is at %s\n", url)
	return err
}

func isLoopback(a net.Addr) bool {
	at, err := netip.ParseAddrPort(a.String())
	return err == nil && at.Addr().Unmap().IsLoopback()
}

// hosts returns what says by which names the page may be reached. A page that only this
// machine reaches is not for a foreign site in a browser on this machine, which has
// given its own name our address.
func hosts(a net.Addr, names string) func(host string) bool {
	known := map[string]bool{"localhost": true}
	for name := range strings.SplitSeq(names, ",") {
		if name = strings.ToLower(strings.TrimSpace(name)); name != "" {
			known[name] = true
		}
	}
	if !isLoopback(a) && len(known) == 1 {
		return func(string) bool { return true }
	}
	return func(host string) bool {
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
			return !isLoopback(a) || ip.Unmap().IsLoopback()
		}
		return known[strings.TrimSuffix(strings.ToLower(host), ".")]
	}
}

// guard lets requests pass that mean this page, and says when it stops.
func guard(p http.Handler, allowed func(host string) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !allowed(r.Host):
			http.Error(w, "this page is not known by that name: taskq serve -host NAME makes it known", http.StatusMisdirectedRequest)
		case r.URL.Path == "/healthz" && !service.IsReady(r.Context()):
			http.Error(w, "stopping", http.StatusServiceUnavailable)
		default:
			p.ServeHTTP(w, r)
		}
	})
}
