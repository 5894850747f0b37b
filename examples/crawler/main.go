// Crawler walks over a web site, breadth first: some pages at once, each with a
// budget of time of its own, and tells what it finds in an order that does not depend
// on who answers first.
//
//	go run ./examples/crawler
//	go run ./examples/crawler -url https://example.com/ -depth 2
//
// crawl.go goes from level to level, page.go fetches a page, site.go is a site for
// when there is no other.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/service"
)

const about = `usage: crawler [flags]

Crawler walks over the pages of a web site, breadth first. It stays on the host of
-url. Without -url it serves a small site itself, one page of which never comes.

Exit status: 0 done, 1 the first page could not be fetched or the pages cannot be
told, 2 wrong arguments, 130 and 143 stopped by a signal.

`

func main() {
	c := &crawl{client: &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone(), CheckRedirect: stay}, found: print}
	start := flag.String("url", "", "begin at this `address`")
	flag.IntVar(&c.depth, "depth", 3, "go so many `steps` away from it")
	flag.IntVar(&c.most, "pages", 1000, "fetch `n` pages at most")
	flag.IntVar(&c.atOnce, "at-once", 8, "fetch `n` pages at once")
	flag.DurationVar(&c.budget, "budget", 2*time.Second, "the `time` that a page may take")
	flag.Usage = func() {
		fmt.Fprint(os.Stderr, about)
		flag.PrintDefaults()
	}
	flag.Parse()
	u, err := url.Parse(*start)
	if flag.NArg() > 0 || c.depth < 0 || c.most < 1 || c.atOnce < 1 || c.budget <= 0 ||
		*start != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		fmt.Fprintln(os.Stderr, "crawler: only flags; -url is like http://example.com/, -depth at least 0, the others more than 0")
		os.Exit(2)
	}
	service.Main(func(ctx context.Context) error {
		return async.Scope(ctx, func(ctx context.Context) error {
			if *start == "" {
				if u, err = serve(ctx); err != nil {
					return err
				}
			}
			return c.run(ctx, u)
		})
	})
}

// print tells of a page. The columns before the address are all digits, so they
// need no more than a width.
func print(p *page) (err error) {
	if p.err != nil {
		_, err = fmt.Printf("  -         -  %s: %v\n", p.url, p.err)
	} else {
		_, err = fmt.Printf("%3d %9d  %s\n", p.status, p.size, p.url)
	}
	return err
}
