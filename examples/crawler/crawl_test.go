package main

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/clitest"
)

func TestMain(m *testing.M) {
	testscript.Main(clitest.LeakChecked(m), map[string]func(){"crawler": main})
}

// TestScripts runs the program as its users do.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Cmds: clitest.Commands[*testscript.TestScript](), Setup: clitest.Setup[*testscript.Env]})
}

// A testSite serves pages by their path, which is the body of each, and counts.
type testSite struct {
	*httptest.Server
	asked   chan string // the paths, in the order of the requests
	release chan struct{}
}

// newSite serves pages; one whose body is "hang" never comes, of those whose body
// begins with "wait" none comes before release is closed, and "to" is a redirect.
func newSite(t *testing.T, pages map[string]string) *testSite {
	s := &testSite{asked: make(chan string, 1000), release: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked <- r.URL.Path
		body, ok := pages[r.URL.Path]
		switch {
		case !ok:
			http.NotFound(w, r)
			return
		case body == "hang":
			<-r.Context().Done()
		case strings.HasPrefix(body, "to "):
			http.Redirect(w, r, body[3:], http.StatusFound)
			return
		case strings.HasPrefix(body, "wait"):
			select {
			case <-s.release:
			case <-r.Context().Done():
			}
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return s
}

// told returns what a program has printed, without the site.
func (s *testSite) told(p *clitest.Process) (lines []string) {
	for line := range strings.Lines(p.Stdout()) {
		status, address, _ := strings.Cut(line, s.URL)
		lines = append(lines, strings.Fields(status)[0]+" "+strings.TrimSpace(address))
	}
	return lines
}

// Breadth first, each page once, on one host, no further than -depth: in the order of
// the links, although the first of them comes last.
func TestPagesAreToldInTheOrderOfTheirLinks(t *testing.T) {
	s := newSite(t, map[string]string{
		"/":    `<a href="/a">a</a> <a HREF = '/b?x=1&amp;y=2#top'>b</a> <a href=/c>c</a> <a href="mailto:a@b">mail</a>`,
		"/a":   `wait <a href="d">d</a> <a href="/">home</a>`,
		"/b":   `<a href="http://localhost:1/elsewhere">out</a> <a href="/d">d</a> <a href="/e">e</a>`,
		"/d":   `<a href="/far">too far</a>`,
		"/far": ``,
	})
	p := clitest.Start(t, nil, "crawler", "-url", s.URL, "-depth", "2")
	for range 4 {
		<-s.asked // / a b c, so that b has come before a
	}
	close(s.release)
	assert.Equal(t, 0, p.Wait(), p.Stderr())
	assert.Equal(t, []string{"200 /", "200 /a", "200 /b?x=1&y=2", "404 /c", "200 /d", "404 /e"}, s.told(p))
	assert.Contains(t, p.Stderr(), "crawler: 6 pages, 0 could not be fetched")
	assert.Len(t, s.asked, 2)
}

// A crawl that is told to stay on a host does not leave it by a redirect.
func TestARedirectToAnotherHostIsNotFollowed(t *testing.T) {
	other := newSite(t, map[string]string{"/": ""})
	s := newSite(t, map[string]string{"/": `<a href="/out"> <a href="/in"> <a href="/circle">`,
		"/out": "to " + other.URL, "/in": "to /page", "/page": "", "/circle": "to /circle"})
	p := clitest.Start(t, nil, "crawler", "-url", s.URL)
	assert.Equal(t, 0, p.Wait(), p.Stderr())
	assert.Equal(t, []string{"200 /", "302 /out", "200 /in", "- /circle: it leads in a circle"}, s.told(p))
	assert.Empty(t, other.asked)
}

// There are more links than may be fetched, and a page that is too large.
func TestPagesAndTheirBytesAreBounded(t *testing.T) {
	var links strings.Builder
	pages := map[string]string{"/1": strings.Repeat("x", 2*largest)}
	for i := range 100 {
		fmt.Fprintf(&links, `<a href="/%d">`, i)
	}
	pages["/"] = links.String()
	s := newSite(t, pages)
	p := clitest.Start(t, nil, "crawler", "-url", s.URL+"/", "-pages", "20")
	assert.Equal(t, 0, p.Wait(), p.Stderr())
	assert.Len(t, s.told(p), 20)
	assert.Contains(t, p.Stdout(), fmt.Sprintf("200 %9d  %s/1\n", largest, s.URL))
}

// A transport is a site without a network, for a bubble: /hangs never comes.
type transport struct {
	pages map[string]string
	hang  atomic.Int64 // requests
}

func (s *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/hangs" {
		s.hang.Add(1)
		defer s.hang.Add(-1)
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "text/html")
	_, _ = w.WriteString(s.pages[r.URL.Path])
	answer := w.Result()
	answer.Request = r
	return answer, nil
}

var home = &url.URL{Scheme: "http", Host: "site", Path: "/"}

func TestSoManyPagesAreFetchedAtOnceAndNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		site := &transport{pages: map[string]string{}}
		for i := range 10 {
			site.pages["/"] += fmt.Sprintf(`<a href="/hangs?%d">`, i)
		}
		c := &crawl{client: &http.Client{Transport: site}, depth: 3, most: 100, atOnce: 3, budget: time.Hour, found: func(*page) error { return nil }}
		ended := make(chan error, 1)
		go func() { ended <- c.run(ctx, home) }()
		synctest.Wait()
		assert.EqualValues(t, 3, site.hang.Load())
		stop()
		assert.ErrorIs(t, <-ended, context.Canceled)
	})
}

// A page that never comes is given up after its budget, and what is behind it is
// fetched.
func TestEachPageHasABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		begin := time.Now()
		c := &crawl{depth: 3, most: math.MaxInt, atOnce: 1, budget: time.Hour, found: func(p *page) error {
			lines = append(lines, fmt.Sprint(time.Since(begin).Round(time.Second), " ", p.url.Path, " ", p.err))
			return nil
		}}
		c.client = &http.Client{Transport: &transport{pages: map[string]string{"/": `<a href="/a"> <a href="/hangs"> <a href="/b">`, "/a": `<a href="/c">`}}}
		require.NoError(t, c.run(t.Context(), home))
		assert.Equal(t, []string{"0s / <nil>", "0s /a <nil>", "1h0m0s /hangs not there within 1h0m0s", "1h0m0s /b <nil>", "1h0m0s /c <nil>"}, lines)
	})
}

// The pages that were there when the signal came are told, the others are not waited
// for.
func TestASignalEndsACrawlThatTellsWhatItHas(t *testing.T) {
	clitest.Signals(t, func(t *testing.T, sig syscall.Signal, status int) {
		s := newSite(t, map[string]string{"/": `<a href="/a"> <a href="/hangs"> <a href="/b">`, "/a": "", "/hangs": "hang"})
		p := clitest.Start(t, nil, "crawler", "-url", s.URL+"/", "-budget", "1h")
		p.WaitFor("/a")
		p.Signal(sig)
		assert.Equal(t, status, p.Wait())
		assert.Equal(t, []string{"200 /", "200 /a"}, s.told(p)[:2])
		assert.Regexp(t, `^crawler: \d pages, 0 could not be fetched\ncrawler: stopped by signal: `+sig.String()+"\n$", p.Stderr())
	})
}
