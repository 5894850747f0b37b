package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/temoto/robotstxt"
)

// rules are what a site's robots.txt says about us. A nil *rules allows all.
type rules struct{ data *robotstxt.RobotsData }

// maxRules is how much of a robots.txt is read: the 500 KiB that RFC 9309 asks
// for.
const maxRules = 500 << 10

// fetchRules reads the robots.txt of the site that start is on. As RFC 9309 has
// it, a site that answers with a client error has no rules, and one that answers
// with a server error is not to be crawled. Redirects are followed. A file that
// does not parse is an error: we do not crawl by rules that we do not understand.
func fetchRules(ctx context.Context, f *fetcher, start *url.URL) (*rules, error) {
	at := start.ResolveReference(&url.URL{Path: "/robots.txt"})
	follow := &fetcher{&http.Client{Transport: f.client.Transport}}
	resp, err := follow.do(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the site: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRules))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", at, err)
	}
	data, err := robotstxt.FromStatusAndBytes(resp.StatusCode, body)
	if err != nil {
		return nil, fmt.Errorf("cannot tell what may be crawled, %s: %w", at, err)
	}
	return &rules{data}, nil
}

// allow reports whether u may be fetched.
func (r *rules) allow(u *url.URL) bool {
	return r == nil || r.data.TestAgent(u.RequestURI(), agentName)
}

// delay is the Crawl-delay that we are asked to keep.
func (r *rules) delay() time.Duration {
	if r == nil {
		return 0
	}
	return r.data.FindGroup(agentName).CrawlDelay
}

// A pace keeps requests apart, however many goroutines make them.
type pace struct {
	every time.Duration

	mu   sync.Mutex
	next time.Time // when the next request may be made
}

// newPace returns a pace of one request every d. The first one has to wait as
// well, as robots.txt was just asked for.
func newPace(d time.Duration) *pace { return &pace{every: d, next: time.Now().Add(d)} }

// wait blocks until it is the caller's turn, or until ctx is done; then it
// returns the cause.
func (p *pace) wait(ctx context.Context) error {
	turn := time.NewTimer(p.reserve())
	defer turn.Stop()
	select {
	case <-turn.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// reserve takes the next free turn and returns how far away it is.
func (p *pace) reserve() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	turn := p.next
	p.next = turn.Add(p.every)
	return turn.Sub(now)
}
