package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A report is what a crawl found. Every URL that was requested counts in exactly
// one of HTML, Files, Redirects and Broken; a redirect that never arrives counts
// in the last.
type report struct {
	Start   string  `json:"start"`
	Stopped string  `json:"stopped,omitempty"` // why it is not complete
	Seconds float64 `json:"seconds"`

	Pages     int   `json:"pages"`     // HTML and Files
	HTML      int   `json:"html"`      // pages that were parsed for links
	Files     int   `json:"files"`     // pages of other types
	Cut       int   `json:"cut"`       // pages with more than what is read of one
	Redirects int   `json:"redirects"` // answers that point elsewhere
	Bytes     int64 `json:"bytes"`     // of the bodies of all answers

	OffSite    int `json:"off_site"`   // links to other sites
	Disallowed int `json:"disallowed"` // links that robots.txt excludes
	TooDeep    int `json:"too_deep"`   // links further away than -depth
	Unvisited  int `json:"unvisited"`  // links that were to be fetched, had the crawl not been stopped

	PagesPerSecond float64  `json:"pages_per_second"` // Pages / Seconds
	Slowest        []timing `json:"slowest"`
	Broken         []broken `json:"broken"`
}

// A timing is how long a page took.
type timing struct {
	URL          string  `json:"url"`
	Milliseconds float64 `json:"ms"`
}

// A broken is a link that leads nowhere, and where it stands.
type broken struct {
	URL     string   `json:"url"`
	Problem string   `json:"problem"`
	FoundOn []string `json:"found_on"`
	More    int      `json:"found_on_more"` // how many places are not listed
}

// report sums up what became of the links; stopped says why that is not all.
func (c *crawl) report(elapsed time.Duration, stopped string) *report {
	r := &report{Start: c.start(), Stopped: stopped, Seconds: elapsed.Seconds(), Slowest: []timing{}, Broken: []broken{}}
	for _, l := range c.found {
		r.add(c, l)
	}
	r.Pages = r.HTML + r.Files
	r.PagesPerSecond = float64(r.Pages) / max(r.Seconds, 1e-9)
	r.Slowest = slowest(c.found)
	return r
}

// start names what is crawled, also if it has not come to that.
func (c *crawl) start() string {
	switch {
	case c.site != nil:
		return c.site.start.String()
	case c.cfg.url != nil:
		return c.cfg.url.String()
	default:
		return "the Go source tree"
	}
}

// add counts l.
func (r *report) add(c *crawl, l *link) {
	switch {
	case l.skipped == offSite:
		r.OffSite++
	case l.skipped == disallowed:
		r.Disallowed++
	case l.skipped == tooDeep:
		r.TooDeep++
	case l.skipped == tooManyHops: // those that lead here are broken
	case l.page == nil:
		r.Unvisited++
	default:
		r.addPage(c, l)
	}
}

func (r *report) addPage(c *crawl, l *link) {
	p := l.page
	r.Bytes += p.size
	if p.cut {
		r.Cut++
	}
	switch {
	case p.problem != "":
		r.addBroken(l, p.problem)
	case p.moved != nil && !c.arrives(l):
		r.addBroken(l, fmt.Sprintf("redirects in a circle, or more than %d times", maxHops))
	case p.moved != nil:
		r.Redirects++
	case p.html:
		r.HTML++
	default:
		r.Files++
	}
}

func (r *report) addBroken(l *link, problem string) {
	from := append([]string{}, l.from...)
	r.Broken = append(r.Broken, broken{l.url.String(), problem, from, l.more})
}

// arrives reports whether l leads to something that is no redirect.
func (c *crawl) arrives(l *link) bool {
	for range maxHops + 1 {
		if l.page == nil || l.page.moved == nil {
			return l.skipped != tooManyHops
		}
		l = c.known[l.page.moved.String()]
	}
	return false
}

// slowest returns the pages that took longest, the slowest first.
func slowest(links []*link) []timing {
	const most = 5
	timings := []timing{}
	for _, l := range links {
		if l.page != nil && l.page.problem == "" && l.page.moved == nil {
			timings = append(timings, timing{l.url.String(), float64(l.page.took) / float64(time.Millisecond)})
		}
	}
	slices.SortStableFunc(timings, func(a, b timing) int { return cmp.Compare(b.Milliseconds, a.Milliseconds) })
	return timings[:min(most, len(timings))]
}

// unreachable says why a complete crawl has no page to show: the start page is
// broken, or leads elsewhere. It returns nil if there are pages.
func (c *crawl) unreachable() error {
	for _, l := range c.found {
		if l.page != nil && l.page.problem == "" && l.page.moved == nil {
			return nil
		}
	}
	start := c.found[0]
	switch to := start.page.moved; {
	case to == nil:
		return fmt.Errorf("%s: %s", start.url, start.page.problem)
	case !c.site.holds(to):
		return fmt.Errorf("%s redirects to another site; try -url %s", start.url, to)
	default:
		return fmt.Errorf("%s redirects to nothing that can be fetched", start.url)
	}
}
