package main

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ambit-go/ambit/async"
)

// This file is B10, the crawl of the blog that ambit comes from: 13 roots and 11 children a page, four
// levels deep, are 19,032 pages. Each is four tasks with a time limit of their own: the page itself, and in
// it fetch and render, which give a random text of 100 letters, and index, which does nothing.
const (
	roots        = 13
	children     = 11
	depthOfCrawl = 4
	pages        = roots * (1 + children + children*children + children*children*children)
	crawlLimit   = time.Minute
)

// crawls returns B10.
func crawls() []contest {
	return []contest{{
		id: "B10", what: "the blog's crawl of 19,032 pages", ours: always(crawlWith(crawlOurs)), allocs: -1, tasks: 4 * pages,
		peers: []rival{
			{"the blog's library, rewritten", 0.8, crawlWith(crawlBlog)},
			{"errgroup, time limits by hand", 1, crawlWith(crawlByHand)},
			{"one goroutine", 0, crawlWith(crawlAlone)},
		},
	}}
}

// A crawl does all pages and counts them.
func crawlWith(crawl func(ctx context.Context, done *atomic.Int64) error) work {
	return func(n int) {
		for range n {
			var done atomic.Int64
			must(crawl(context.Background(), &done))
			mustBe(done.Load() == pages)
		}
	}
}

func randomText(context.Context) (string, error) {
	text := make([]byte, 100)
	for i := range text {
		text[i] = 'a' + byte(rand.IntN(26))
	}
	return string(text), nil
}

func index(context.Context) (string, error) { return "", nil }

// below returns how many pages a page of a level links to.
func below(level int) int {
	if level == depthOfCrawl {
		return 0
	}
	return children
}

// crawlOurs is the crawl with ambit.
func crawlOurs(ctx context.Context, done *atomic.Int64) error {
	return async.Scope(ctx, func(ctx context.Context) error { return pagesOurs(ctx, roots, 1, done) })
}

func pagesOurs(ctx context.Context, n, level int, done *atomic.Int64) error {
	all := make([]*async.Future[string], n)
	for i := range all {
		all[i] = async.Execute(ctx, func(ctx context.Context) (string, error) {
			for _, step := range []func(context.Context) (string, error){randomText, randomText, index} {
				if _, err := async.Execute(ctx, step).Await(ctx, crawlLimit); err != nil {
					return "", err
				}
			}
			done.Add(1)
			return "", pagesOurs(ctx, below(level), level+1, done)
		})
	}
	for _, page := range all {
		if _, err := page.Await(ctx, crawlLimit); err != nil {
			return err
		}
	}
	return nil
}

// A blogTask is that of the blog's library, by its description: Execute starts a goroutine that starts one, the
// result comes by a channel of one, and Await makes a context with the time limit and selects.
type blogTask struct {
	result chan outcomeOf[string]
	abort  func()
}

type outcomeOf[T any] struct {
	v   T
	err error
}

func blogExecute(ctx context.Context, handler func(context.Context) (string, error), abort func()) *blogTask {
	t := &blogTask{make(chan outcomeOf[string], 1), abort}
	go func() {
		ended := make(chan outcomeOf[string], 1)
		go func() {
			v, err := handler(ctx)
			ended <- outcomeOf[string]{v, err}
		}()
		t.result <- <-ended
	}()
	return t
}

func (t *blogTask) await(ctx context.Context, limit time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case r := <-t.result:
		return r.v, r.err
	case <-ctx.Done():
		t.abort()
		return "", ctx.Err()
	}
}

// crawlBlog is the crawl with the blog's library.
func crawlBlog(ctx context.Context, done *atomic.Int64) error { return pagesBlog(ctx, roots, 1, done) }

func pagesBlog(ctx context.Context, n, level int, done *atomic.Int64) error {
	all := make([]*blogTask, n)
	for i := range all {
		all[i] = blogExecute(ctx, func(ctx context.Context) (string, error) {
			for _, step := range []func(context.Context) (string, error){randomText, randomText, index} {
				if _, err := blogExecute(ctx, step, func() {}).await(ctx, crawlLimit); err != nil {
					return "", err
				}
			}
			done.Add(1)
			return "", pagesBlog(ctx, below(level), level+1, done)
		}, func() {})
	}
	for _, page := range all {
		if _, err := page.await(ctx, crawlLimit); err != nil {
			return err
		}
	}
	return nil
}

// crawlByHand is the crawl with errgroup, and time limits by hand. A group joins the pages; a step that is too slow is
// left behind, as by a careful program without ambit.
func crawlByHand(ctx context.Context, done *atomic.Int64) error {
	return pagesByHand(ctx, roots, 1, done)
}

func pagesByHand(ctx context.Context, n, level int, done *atomic.Int64) error {
	g, ctx := errgroup.WithContext(ctx)
	for range n {
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, crawlLimit)
			defer cancel()
			for _, step := range []func(context.Context) (string, error){randomText, randomText, index} {
				if _, err := limitedByHand(ctx, step); err != nil {
					return err
				}
			}
			done.Add(1)
			if n := below(level); n > 0 {
				return pagesByHand(ctx, n, level+1, done)
			}
			return nil
		})
	}
	return g.Wait()
}

func limitedByHand(ctx context.Context, f func(context.Context) (string, error)) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, crawlLimit)
	defer cancel()
	ended := make(chan outcomeOf[string], 1)
	go func() {
		v, err := f(ctx)
		ended <- outcomeOf[string]{v, err}
	}()
	select {
	case r := <-ended:
		return r.v, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// crawlAlone is the same work on one goroutine, without a limit: what is left of the time is the library's.
func crawlAlone(ctx context.Context, done *atomic.Int64) error {
	return pagesAlone(ctx, roots, 1, done)
}

func pagesAlone(ctx context.Context, n, level int, done *atomic.Int64) error {
	for range n {
		for _, step := range []func(context.Context) (string, error){randomText, randomText, index} {
			if _, err := step(ctx); err != nil {
				return err
			}
		}
		done.Add(1)
		if err := pagesAlone(ctx, below(level), level+1, done); err != nil {
			return err
		}
	}
	return nil
}
