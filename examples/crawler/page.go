package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/ambit-go/ambit/async"
)

const (
	// userAgent says who we are; its first word is the one that robots.txt
	// calls us by.
	userAgent = agentName + "/1.0 (+https://github.com/ambit-go/ambit)"
	agentName = "ambit-crawler"

	// maxBody is how many bytes of a page are read, in bytes. The rest of a
	// larger one is left, and its links with it.
	maxBody = 4 << 20
)

// A page is the answer to one request, or why there was none.
type page struct {
	status  int
	html    bool          // it is parsed for links
	size    int64         // bytes of the body that were read
	cut     bool          // there was more than maxBody, or maxLinks
	took    time.Duration // from the request to the end of the body
	moved   *url.URL      // where it redirects to
	links   []*url.URL    // what it links to
	problem string        // why it is broken, if it is

	body []byte // of HTML, until it is parsed
}

// A fetcher makes requests. Any number of goroutines may use it.
type fetcher struct{ client *http.Client }

// newFetcher returns a fetcher for n requests at a time. It follows no
// redirects: where they lead is one more link, which may be known already, or
// be none of our business.
func newFetcher(n int) *fetcher {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = n
	return &fetcher{&http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// close is an exit hook: it closes the connections that were kept for reuse.
func (f *fetcher) close(context.Context, error) error {
	f.client.CloseIdleConnections()
	return nil
}

// get fetches u. It reads the body to its end, or to maxBody, before it
// returns: its ctx, and the connection with it, lasts no longer than the task.
func (f *fetcher) get(ctx context.Context, u *url.URL) (*page, error) {
	begin := time.Now()
	resp, err := f.do(ctx, u)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	p := &page{status: resp.StatusCode}
	p.classify(resp)
	if err := p.read(resp.Body); err != nil {
		return nil, fmt.Errorf("reading the body: %w", err)
	}
	p.took = time.Since(begin)
	return p, nil
}

func (f *fetcher) do(ctx context.Context, u *url.URL) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", userAgent)
	return f.client.Do(req)
}

// classify decides what the answer is by its header: a document, a redirect or
// a failure.
func (p *page) classify(resp *http.Response) {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case p.status >= 400:
		p.problem = statusText(p.status)
	case p.status < 300:
		p.html = kind == "text/html" || kind == "application/xhtml+xml"
	default:
		to, err := resp.Location()
		if err != nil || !hasHost(to) {
			p.problem = statusText(p.status) + " without a usable Location"
			return
		}
		p.moved = normalize(to)
	}
}

func statusText(status int) string {
	text := http.StatusText(status)
	if text == "" {
		text = "unknown status"
	}
	return fmt.Sprintf("%d %s", status, text)
}

// read reads at most maxBody bytes of body and keeps them if they are HTML.
func (p *page) read(body io.Reader) (err error) {
	limited := io.LimitReader(body, maxBody)
	if p.html {
		p.body, err = io.ReadAll(limited)
		p.size = int64(len(p.body))
	} else {
		p.size, err = io.Copy(io.Discard, limited)
	}
	if err != nil {
		return err
	}
	_, err = io.ReadFull(body, make([]byte, 1))
	p.cut = err == nil
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// parse finds the links of p, which was fetched from u, and drops its body.
func (p *page) parse(u *url.URL) {
	if p.html {
		links, more := extractLinks(u, bytes.NewReader(p.body))
		p.links, p.body = links, nil
		p.cut = p.cut || more
	}
}

// failedPage is a page that there was no answer for. Its caller knows that the
// crawl goes on, so a TimeoutError is that of the page.
func failedPage(err error) *page {
	var timeout *async.TimeoutError
	var request *url.Error
	switch {
	case errors.As(err, &timeout):
		return &page{problem: fmt.Sprintf("timed out after %v", timeout.Limit), took: timeout.Waited}
	case errors.As(err, &request): // repeats the URL
		return &page{problem: request.Err.Error()}
	default:
		return &page{problem: err.Error()}
	}
}
