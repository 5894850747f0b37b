package adopting

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/ambit-go/ambit/async"
)

// Connect dials for at most 5 s. The client keeps life, which lasts as long as
// the caller's ctx. A client that comes too late is closed.
func Connect[C io.Closer](ctx context.Context, dial func(ctx context.Context) (C, error)) (c C, err error) {
	life, end := context.WithCancelCause(ctx)
	err = async.Scope(ctx, func(ctx context.Context) error {
		c, err = async.Execute(ctx, func(context.Context) (C, error) { return dial(life) },
			async.OnDiscard(func(c C) { _ = c.Close() }),
		).Await(ctx, 5*time.Second)
		if err != nil {
			end(err) // dial hears of it, and is joined
		}
		return err
	})
	return c, err
}

// Fetch gets all urls at once. Each body is read where its context lives.
func Fetch(ctx context.Context, client *http.Client, urls ...string) (bodies [][]byte, err error) {
	for body, err := range async.Map(ctx, slices.Values(urls), func(ctx context.Context, url string) ([]byte, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return nil, err
		}
		response, err := client.Do(request)
		if err != nil {
			return nil, err
		}
		defer func() { _ = response.Body.Close() }()
		return io.ReadAll(response.Body)
	}) {
		if err != nil {
			return nil, err
		}
		bodies = append(bodies, body)
	}
	return bodies, nil
}

// Pages loads every page once, whoever asks.
type Pages struct {
	owner context.Context // of the scope that the loads belong to
	load  func(ctx context.Context, url string) (string, error)

	mu    sync.Mutex
	pages map[string]*async.Future[string]
}

// NewPages returns pages that load as long as the scope of ctx lasts.
func NewPages(ctx context.Context, load func(ctx context.Context, url string) (string, error)) *Pages {
	return &Pages{owner: ctx, load: load, pages: map[string]*async.Future[string]{}}
}

// Get returns a page, or says that ctx is done. The load goes on for the others.
func (p *Pages) Get(ctx context.Context, url string) (string, error) {
	return p.page(url).Wait(ctx)
}

func (p *Pages) page(url string) *async.Future[string] {
	p.mu.Lock()
	defer p.mu.Unlock()
	page, ok := p.pages[url]
	if !ok {
		page = async.Execute(p.owner, func(ctx context.Context) (string, error) { return p.load(ctx, url) })
		p.pages[url] = page
	}
	return page
}
