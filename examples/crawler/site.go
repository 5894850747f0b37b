package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ambit-go/ambit/examples/internal/loopback"
)

// A site is where a crawl starts, how far it may go and how fast.
type site struct {
	start *url.URL
	rules *rules
	pace  *pace
}

// newSite returns the site around start, or an error if its rules do not even
// let us in.
func newSite(start *url.URL, r *rules, delay time.Duration) (*site, error) {
	if !r.allow(start) {
		return nil, fmt.Errorf("robots.txt of %s does not allow %s to fetch %s", start.Host, agentName, start)
	}
	return &site{start: start, rules: r, pace: newPace(max(delay, r.delay()))}, nil
}

// holds reports whether u belongs to the site: same scheme, host and port.
func (s *site) holds(u *url.URL) bool {
	return u.Scheme == s.start.Scheme && u.Host == s.start.Host
}

// serveGoSource serves the source tree of the local Go installation on the
// loopback interface, for as long as the scope of ctx has other work.
func serveGoSource(ctx context.Context) (*site, error) {
	src, err := goSource(ctx)
	if err != nil {
		return nil, err
	}
	root, err := loopback.Serve(ctx, http.FileServer(http.Dir(src)))
	if err != nil {
		return nil, fmt.Errorf("cannot serve the Go source tree: %w", err)
	}
	start, err := url.Parse(root + "/")
	if err != nil {
		return nil, err
	}
	return newSite(start, nil, 0)
}

// goSource finds the source tree of the Go installation that go run uses.
func goSource(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("cannot find the Go installation (go env GOROOT: %w); use -url to crawl something else", err)
	}
	src := filepath.Join(strings.TrimSpace(string(out)), "src")
	if info, err := os.Stat(src); err != nil || !info.IsDir() {
		return "", fmt.Errorf("the Go installation has no source tree at %s; install it, or use -url to crawl something else", src)
	}
	return src, nil
}
