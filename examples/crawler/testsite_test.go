package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A testSite is a web site that knows what it was asked for and what it
// answered, so that a report can be held against it.
type testSite struct {
	pages map[string]http.HandlerFunc

	mu       sync.Mutex
	hits     map[string]int           // requests, by path and query
	order    []string                 // the same, in order
	times    []time.Time              // and when
	answered map[int]int              // answers, by status
	bytes    int64                    // in bodies; of each no more than is read
	running  int                      // requests being answered
	most     int                      // the most at one time
	asked    map[string]chan struct{} // closed when a path is asked for
}

func newTestSite() *testSite {
	return &testSite{
		pages:    make(map[string]http.HandlerFunc),
		hits:     make(map[string]int),
		answered: make(map[int]int),
		asked:    make(map[string]chan struct{}),
	}
}

// page adds a page of HTML.
func (s *testSite) page(path, html string) {
	s.pages[path] = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, html)
	}
}

// file adds something that is not HTML.
func (s *testSite) file(path, kind, content string) {
	s.pages[path] = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		io.WriteString(w, content)
	}
}

// redirect adds a redirect.
func (s *testSite) redirect(path, to string) {
	s.pages[path] = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
	}
}

// hang adds a page that is never answered.
func (s *testSite) hang(path string) {
	s.pages[path] = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
}

// slow adds a page that takes d.
func (s *testSite) slow(path string, d time.Duration) {
	s.pages[path] = func(w http.ResponseWriter, r *http.Request) {
		if sleep(r.Context(), d) {
			io.WriteString(w, "at last")
		}
	}
}

// ServeHTTP answers with the page of the path, and counts.
func (s *testSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.begin(r)
	defer s.end()
	if r.URL.Path != "/robots.txt" { // which is no page, and not in the report
		w = &countingWriter{ResponseWriter: w, site: s}
	}
	page, ok := s.pages[r.URL.Path]
	if !ok {
		page = http.NotFound
	}
	page(w, r)
}

func (s *testSite) begin(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running++
	s.most = max(s.most, s.running)
	key := r.URL.RequestURI()
	s.order = append(s.order, key)
	s.times = append(s.times, time.Now())
	if s.hits[key]++; s.hits[key] == 1 {
		close(s.askedLocked(key))
	}
}

func (s *testSite) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
}

// wasAsked is closed when somebody asks for key.
func (s *testSite) wasAsked(key string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.askedLocked(key)
}

func (s *testSite) askedLocked(key string) chan struct{} {
	if s.asked[key] == nil {
		s.asked[key] = make(chan struct{})
	}
	return s.asked[key]
}

func (s *testSite) hitsOf(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hits[key]
}

// A countingWriter counts before it writes, so a client that has read an answer
// finds it counted.
type countingWriter struct {
	http.ResponseWriter
	site    *testSite
	size    int64
	started bool
}

func (w *countingWriter) WriteHeader(status int) {
	w.started = true
	w.site.mu.Lock()
	w.site.answered[status]++
	w.site.mu.Unlock()
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController flush.
func (w *countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *countingWriter) Write(p []byte) (int, error) {
	if !w.started {
		w.WriteHeader(http.StatusOK)
	}
	w.site.mu.Lock()
	w.site.bytes += max(0, min(int64(len(p)), maxBody-w.size))
	w.site.mu.Unlock()
	w.size += int64(len(p))
	return w.ResponseWriter.Write(p)
}

// listen serves s on the loopback interface until the test ends.
func (s *testSite) listen(t interface{ Cleanup(func()) }) string {
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return server.URL
}

// A memoryNet is a network in memory, for use in a synctest bubble. Its one
// host is site.test.
type memoryNet struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (n *memoryNet) Accept() (net.Conn, error) {
	select {
	case conn := <-n.conns:
		return conn, nil
	case <-n.done:
		return nil, net.ErrClosed
	}
}

func (n *memoryNet) Close() error   { n.once.Do(func() { close(n.done) }); return nil }
func (n *memoryNet) Addr() net.Addr { return &net.IPAddr{} }

func (n *memoryNet) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	if addr != "site.test:80" {
		return nil, fmt.Errorf("nobody may dial %s", addr)
	}
	client, server := net.Pipe()
	select {
	case n.conns <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// crawlInMemory crawls http://site.test/ with the given flags. In a synctest
// bubble the time it takes is exact.
func crawlInMemory(t *testing.T, s *testSite, args ...string) (*report, int) {
	t.Helper()
	network := &memoryNet{conns: make(chan net.Conn), done: make(chan struct{})}
	server := &http.Server{Handler: s}
	served := make(chan error, 1)
	go func() { served <- server.Serve(network) }()
	defer func() {
		server.Close()
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	}()

	var cfg config
	flags := flag.NewFlagSet("crawler", flag.ContinueOnError)
	cfg.define(flags)
	require.NoError(t, flags.Parse(append([]string{"-url", "http://site.test/"}, args...)))
	require.NoError(t, cfg.complete(flags.Args()))
	c := newCrawl(cfg, newProgress(io.Discard))
	c.fetcher.client.Transport.(*http.Transport).DialContext = network.dial
	return c.do(t.Context())
}

// everything is a site with all that a crawl may meet, save for what hangs.
func everything() *testSite {
	s := newTestSite()
	s.file("/robots.txt", "text/plain", "User-agent: *\nDisallow: /private\nAllow: /private/open\n")
	s.page("/", `<a href="/a"> <a href="/a#x"> <a href="./b/../a"> <a href="/b/"> <a href="/cycle/1"> <a href="/missing">
		<a href="/private/x"> <a href="/private/open"> <a href="http://elsewhere.test/"> <a href="https://site.test/"> <a href="mailto:a@b">`)
	s.page("/a", `<a href="/"> <a href="/missing#here"> <a href="/broken"> <a href="/teapot"> <img src="/picture.png">`)
	s.page("/b/", `<base href="/deep/er/"> <a href="page"> <a href="../up">`)
	s.page("/deep/er/page", `<a href="/moved"> <a href="/away"> <a href="/away/hidden"> <a href="/nowhere">`)
	s.page("/deep/up", `<a href="/circle/1"> <a href="/far/0"> <a href="/near/0"> <a href="/huge"> <a href="/huge.html"> <a href="/malformed">`)
	s.page("/cycle/1", `<a href="2">`)
	s.page("/cycle/2", `<a href="1"> <a href="/">`)
	s.page("/private/open", `in plain sight`)
	s.page("/target", `<a href="/moved"> <a href="/to-missing">`)
	s.page("/near/end", `arrived`)
	s.page("/malformed", `<a href="/odd"<p> <<< <a href=/odder <b> <a href="/cut`)
	s.page("/odd", ``)
	s.file("/odder", "", "")
	s.file("/picture.png", "image/png", `<a href="/never">`)
	s.file("/huge", "application/octet-stream", strings.Repeat("x", maxBody+1<<20))
	s.page("/huge.html", `<a href="/first">`+strings.Repeat(" ", maxBody)+`<a href="/never">`)
	s.page("/first", ``)
	s.redirect("/moved", "/target#part")
	s.redirect("/away", "http://elsewhere.test/x")
	s.redirect("/away/hidden", "/private/y")
	s.redirect("/nowhere", "")
	s.redirect("/to-missing", "/also-missing")
	s.redirect("/circle/1", "/circle/2")
	s.redirect("/circle/2", "/circle/1")
	for i := range 20 {
		s.redirect(fmt.Sprint("/far/", i), fmt.Sprint("/far/", i+1))
	}
	for i := range maxHops {
		s.redirect(fmt.Sprint("/near/", i), fmt.Sprint("/near/", i+1))
	}
	s.redirect(fmt.Sprint("/near/", maxHops-1), "/near/end")
	s.pages["/broken"] = func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "oh", http.StatusInternalServerError) }
	s.pages["/teapot"] = func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "short", http.StatusTeapot) }
	return s
}

// answer is a page with the given status.
func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// drip sends a byte a second until its reader goes away.
func drip(w http.ResponseWriter, r *http.Request) {
	for sleep(r.Context(), time.Second) {
		io.WriteString(w, ".")
		http.NewResponseController(w).Flush()
	}
}

// sleep reports whether d has passed before ctx was done.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
