package main

import (
	"context"
	"errors"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// A page is what has come of an address.
type page struct {
	url    *url.URL
	status int
	size   int        // bytes
	links  []*url.URL // absolute
	err    error      // why there is no page
}

// largest is how many bytes of a page are read. The rest is left, and its links with
// it.
const largest = 1 << 20

// stay follows redirects on the same host. One that leads to another is told as it is.
func stay(r *http.Request, via []*http.Request) error {
	switch {
	case r.URL.Host != via[0].URL.Host:
		return http.ErrUseLastResponse
	case len(via) > 10:
		return errors.New("it leads in a circle")
	}
	return nil
}

// get fetches a page. It reads the body before it returns: its ctx, and the
// connection with that, lasts no longer than the task.
func get(ctx context.Context, client *http.Client, u *url.URL) (*page, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(r)
	var failed *url.Error
	if errors.As(err, &failed) {
		return nil, failed.Err // without the address, which is told anyway
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, largest))
	if err != nil {
		return nil, err
	}
	p := &page{url: u, status: answer.StatusCode, size: len(body)}
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
		p.links = links(answer.Request.URL, body) // where redirects have led
	}
	return p, nil
}

var anchor = regexp.MustCompile(`(?i)<a\s[^>]*?href\s*=\s*["']?([^"'\s>]+)`)

// links returns where the anchors of a page lead to.
func links(base *url.URL, body []byte) (all []*url.URL) {
	for _, m := range anchor.FindAllSubmatch(body, -1) {
		u, err := base.Parse(html.UnescapeString(string(m[1])))
		if err != nil || u.Scheme != "http" && u.Scheme != "https" {
			continue
		}
		u.Fragment = ""
		all = append(all, u)
	}
	return all
}
