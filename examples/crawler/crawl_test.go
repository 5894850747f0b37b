package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/examples/internal/cli"
)

func TestReportAgreesWithTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := everything()
		rep, status := crawlInMemory(t, s)
		require.Equal(t, cli.StatusDone, status, rep.Stopped)

		agrees(t, s, rep)
		assert.Equal(t, 14, rep.HTML)
		assert.Equal(t, 3, rep.Files, "picture, huge, odder")
		assert.Equal(t, 14, rep.Redirects, "10 of them near")
		assert.Equal(t, 2, rep.Cut)
		assert.Equal(t, 3, rep.OffSite, "elsewhere, its /x, https")
		assert.Equal(t, 2, rep.Disallowed)
		assert.Zero(t, rep.TooDeep)
		assert.Zero(t, rep.Unvisited)
		assert.Zero(t, s.hitsOf("/private/x")+s.hitsOf("/private/y")+s.hitsOf("/never")+s.hitsOf("/cut"))
	})
}

// agrees holds rep against what s has counted.
func agrees(t assert.TestingT, s *testSite, rep *report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := 0
	for path, n := range s.hits {
		if path != "/robots.txt" {
			assert.Equal(t, 1, n, "requests for %s", path)
			requests += n
		}
	}
	assert.Equal(t, requests, rep.HTML+rep.Files+rep.Redirects+len(rep.Broken), "requests")
	assert.Equal(t, rep.HTML+rep.Files, rep.Pages)
	assert.Equal(t, s.answered[200], rep.Pages, "pages")
	assert.Equal(t, s.bytes, rep.Bytes, "bytes")
}

func TestBrokenLinksAreReportedWithWhereTheyStand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rep, _ := crawlInMemory(t, everything())
		const site = "http://site.test"
		circle := "redirects in a circle, or more than 10 times"
		want := []broken{
			{URL: site + "/missing", Problem: "404 Not Found", FoundOn: []string{site + "/", site + "/a"}},
			{URL: site + "/broken", Problem: "500 Internal Server Error", FoundOn: []string{site + "/a"}},
			{URL: site + "/teapot", Problem: "418 I'm a teapot", FoundOn: []string{site + "/a"}},
			{URL: site + "/nowhere", Problem: "302 Found without a usable Location", FoundOn: []string{site + "/deep/er/page"}},
			{URL: site + "/circle/1", Problem: circle, FoundOn: []string{site + "/deep/up", site + "/circle/2"}},
			{URL: site + "/circle/2", Problem: circle, FoundOn: []string{site + "/circle/1"}},
			{URL: site + "/also-missing", Problem: "404 Not Found", FoundOn: []string{site + "/to-missing"}},
			{URL: site + "/far/0", Problem: circle, FoundOn: []string{site + "/deep/up"}},
		}
		for i := range maxHops {
			want = append(want, broken{URL: fmt.Sprint(site, "/far/", i+1), Problem: circle, FoundOn: []string{fmt.Sprint(site, "/far/", i)}})
		}
		assert.ElementsMatch(t, want, rep.Broken)
	})
}

func TestReportDoesNotDependOnConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first *report
		for _, n := range []int{1, 2, 3, 8, 64} {
			rep, status := crawlInMemory(t, everything(), "-concurrency", fmt.Sprint(n))
			require.Equal(t, cli.StatusDone, status)
			rep.Seconds, rep.PagesPerSecond, rep.Slowest = 0, 0, nil
			if first == nil {
				first = rep
			}
			assert.Equal(t, first, rep, "-concurrency %d", n)
		}
	})
}

func TestConcurrencyIsReachedAndNeverExceeded(t *testing.T) {
	for _, n := range []int{1, 2, 7} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestSite()
				var links strings.Builder
				for i := range 40 {
					s.slow(fmt.Sprint("/", i), time.Minute)
					fmt.Fprintf(&links, `<a href="/%d">`, i)
				}
				s.page("/", links.String())
				rep, status := crawlInMemory(t, s, "-delay", "0", "-concurrency", fmt.Sprint(n), "-page-timeout", "2m", "-timeout", "0")
				require.Equal(t, cli.StatusDone, status)
				assert.Equal(t, 41, rep.Pages)
				assert.Equal(t, n, s.most)
				rounds := (40 + n - 1) / n
				assert.Equal(t, time.Duration(rounds)*time.Minute, seconds(rep.Seconds))
			})
		})
	}
}

func TestLevelsAreCrawledOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSite()
		var plant func(path string, depth int)
		plant = func(path string, depth int) {
			html := ""
			for i := range 3 {
				if depth < 4 {
					html += fmt.Sprintf(`<a href="%s%d">`, path, i)
					plant(fmt.Sprintf("%s%d", path, i), depth+1)
				}
			}
			s.page(path, html)
		}
		plant("/", 0)
		s.slow("/1", time.Second) // the level below waits for it
		_, status := crawlInMemory(t, s, "-delay", "0")
		require.Equal(t, cli.StatusDone, status)
		pages := s.order[1:] // after robots.txt
		assert.True(t, slices.IsSortedFunc(pages, func(a, b string) int { return len(a) - len(b) }), "%v", pages)
	})
}

func TestDepth(t *testing.T) {
	for _, test := range []struct{ depth, pages, tooDeep int }{{0, 1, 1}, {1, 2, 1}, {2, 3, 1}, {3, 4, 0}, {9, 4, 0}} {
		t.Run(fmt.Sprint(test.depth), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestSite()
				s.page("/", `<a href="/go">`)
				s.redirect("/go", "/1") // is no step
				s.page("/1", `<a href="/2a"><a href="/">`)
				s.redirect("/2a", "/2")
				s.page("/2", `<a href="/3">`)
				s.page("/3", `<a href="/1">`)
				rep, status := crawlInMemory(t, s, "-depth", fmt.Sprint(test.depth))
				require.Equal(t, cli.StatusDone, status)
				assert.Equal(t, test.pages, rep.Pages)
				assert.Equal(t, test.tooDeep, rep.TooDeep)
			})
		})
	}
}

func TestHangingPageCostsItsBudgetAndNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSite()
		s.page("/", `<a href="/hang"><a href="/page">`)
		s.page("/page", `<a href="/next">`)
		s.page("/next", ``)
		s.hang("/hang")
		rep, status := crawlInMemory(t, s, "-delay", "0", "-page-timeout", "3s")
		require.Equal(t, cli.StatusDone, status)
		assert.Equal(t, 3*time.Second, seconds(rep.Seconds))
		assert.Equal(t, 3, rep.Pages)
		assert.Equal(t, []broken{{URL: "http://site.test/hang", Problem: "timed out after 3s", FoundOn: []string{"http://site.test/"}}}, rep.Broken)
	})
}

func TestBodyThatNeverEndsCostsItsBudgetToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSite()
		s.page("/", `<a href="/drip">`)
		s.pages["/drip"] = drip
		rep, status := crawlInMemory(t, s, "-delay", "0", "-page-timeout", "3s")
		require.Equal(t, cli.StatusDone, status)
		assert.Equal(t, 3*time.Second, seconds(rep.Seconds))
		assert.Equal(t, "timed out after 3s", rep.Broken[0].Problem)
	})
}

func TestDeadlineKeepsWhatWasFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSite()
		s.page("/", `<a href="/hang"><a href="/page"><a href="/late">`)
		s.page("/page", `<a href="/unseen">`)
		s.slow("/late", time.Minute)
		s.hang("/hang")
		rep, status := crawlInMemory(t, s, "-delay", "0", "-page-timeout", "0", "-timeout", "10s")
		assert.Equal(t, cli.StatusDeadline, status)
		assert.Equal(t, 10*time.Second, seconds(rep.Seconds))
		assert.Equal(t, "stopped by -timeout", rep.Stopped)
		assert.Equal(t, 2, rep.Pages, "the start page and the one behind the hanging one")
		assert.Equal(t, 3, rep.Unvisited, "hang, late, unseen")
		assert.Empty(t, rep.Broken, "a page that was given up is not broken")
	})
}

// The limit of a page and that of the crawl are told apart by whose they are,
// not by what they look like.
func TestPageTimeoutIsNotTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSite()
		s.hang("/robots.txt")
		rep, status := crawlInMemory(t, s, "-page-timeout", "2s")
		assert.Equal(t, cli.StatusFailed, status)
		assert.Contains(t, rep.Stopped, "robots.txt")
	})
}

func TestRequestsKeepTheirDistance(t *testing.T) {
	tests := []struct {
		name, robots, delay string
		want                time.Duration
	}{
		{"by default", "", "", 500 * time.Millisecond},
		{"by -delay", "", "2s", 2 * time.Second},
		{"by Crawl-delay", "User-agent: *\nCrawl-delay: 3\n", "1s", 3 * time.Second},
		{"by -delay if that is longer", "User-agent: *\nCrawl-delay: 3\n", "5s", 5 * time.Second},
		{"by our own Crawl-delay", "User-agent: ambit-crawler\nCrawl-delay: 4\n\nUser-agent: *\nCrawl-delay: 30\n", "0", 4 * time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := everything()
				delete(s.pages, "/robots.txt")
				if test.robots != "" {
					s.file("/robots.txt", "text/plain", test.robots)
				}
				args := []string{"-depth", "1"}
				if test.delay != "" {
					args = append(args, "-delay", test.delay)
				}
				_, status := crawlInMemory(t, s, args...)
				require.Equal(t, cli.StatusDone, status)
				require.Greater(t, len(s.times), 5)
				for i := 1; i < len(s.times); i++ {
					assert.Equal(t, test.want, s.times[i].Sub(s.times[i-1]), "before request %d", i)
				}
			})
		})
	}
}

func TestWaitingForATurnIsNotThePagesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := everything()
		rep, status := crawlInMemory(t, s, "-depth", "1", "-delay", "10s", "-page-timeout", "1s")
		require.Equal(t, cli.StatusDone, status)
		for _, b := range rep.Broken {
			assert.NotContains(t, b.Problem, "timed out")
		}
	})
}

func TestRobots(t *testing.T) {
	tests := []struct {
		name, robots string
		code         int
		status       int
		stopped      string
	}{
		{"there are none", "", 404, cli.StatusDone, ""},
		{"they are forbidden", "", 403, cli.StatusDone, ""},
		{"the server fails", "", 503, cli.StatusFailed, "does not allow ambit-crawler"},
		{"nobody may", "User-agent: *\nDisallow: /\n", 200, cli.StatusFailed, "does not allow ambit-crawler"},
		{"we may not", "User-agent: Ambit-Crawler\nDisallow: /\n", 200, cli.StatusFailed, "does not allow ambit-crawler"},
		{"others may not", "User-agent: other\nDisallow: /\n", 200, cli.StatusDone, ""},
		{"only the start page", "User-agent: *\nDisallow: /\nAllow: /$\n", 200, cli.StatusDone, ""},
		{"nothing one could read", "Disallow: /\nUser-agent: *\n", 200, cli.StatusFailed, "cannot tell what may be crawled"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestSite()
				s.page("/", ``)
				s.pages["/robots.txt"] = answer(test.code, test.robots)
				rep, status := crawlInMemory(t, s)
				assert.Equal(t, test.status, status)
				assert.Contains(t, rep.Stopped, test.stopped)
				assert.Equal(t, test.status == cli.StatusDone, s.hitsOf("/") == 1)
			})
		})
	}
}

func TestStartPageThatCannotBeCrawled(t *testing.T) {
	tests := []struct{ name, to, want string }{
		{"is missing", "", "http://site.test/: 404 Not Found"},
		{"is elsewhere", "https://www.site.test/", "try -url https://www.site.test/"},
		{"leads to itself", "/", "redirects to nothing"},
		{"leads to nothing", "/missing", "redirects to nothing"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestSite()
				if test.to != "" {
					s.redirect("/", test.to)
				}
				rep, status := crawlInMemory(t, s)
				assert.Equal(t, cli.StatusFailed, status)
				assert.Contains(t, rep.Stopped, test.want)
			})
		})
	}
}

func TestLinksThatAreEverywhereAreListedInAFewPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSite()
		html := `<a href="/missing">`
		for i := range 20 {
			s.page(fmt.Sprint("/", i), `<a href="/missing">`)
			html += fmt.Sprintf(`<a href="/%d">`, i)
		}
		s.page("/", html)
		rep, _ := crawlInMemory(t, s)
		require.Len(t, rep.Broken, 1)
		assert.Len(t, rep.Broken[0].FoundOn, 5)
		assert.Equal(t, 16, rep.Broken[0].More)
	})
}

// seconds is s to the microsecond, in which floating point does not show.
func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Microsecond)
}
