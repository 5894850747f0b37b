//go:build unix

package main

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/clitest"
)

func TestMain(m *testing.M) {
	testscript.Main(clitest.LeakChecked(m), map[string]func(){"hang": main, "ten": ten})
}

// TestScripts runs the program as its users do.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Cmds: clitest.Commands[*testscript.TestScript](), Setup: clitest.Setup[*testscript.Env]})
}

// start starts the program, and returns its address, and how to ask it, once all four faults are there.
func start(t *testing.T) (p *clitest.Process, url string, ask func(path, accept string) string) {
	return startOf(t, "hang", "-addr", "127.0.0.1:0")
}

// startOf is start for a program that has the four faults.
func startOf(t *testing.T, program string, args ...string) (p *clitest.Process, url string, ask func(path, accept string) string) {
	p = clitest.Start(t, nil, program, args...)
	clitest.Eventually(t, "the address", func() bool {
		_, rest, _ := strings.Cut(p.Stderr(), "and why? ")
		line, _, whole := strings.Cut(rest, "\n")
		url = line
		return whole
	})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ask = func(path, accept string) string {
		r, err := http.NewRequest(http.MethodGet, url+path, nil)
		require.NoError(t, err)
		r.Header.Set("Accept", accept)
		answer, err := client.Do(r)
		if err != nil {
			return ""
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return string(text)
	}
	clitest.Eventually(t, "the faults", func() bool {
		text := ask("", "*/*")
		for _, fault := range faults {
			if !regexp.MustCompile(fault.curl).MatchString(text) {
				return false
			}
		}
		return true
	})
	return p, url, ask
}

// faults are what curl and the page say of the four.
var faults = map[string]struct{ curl, page string }{
	"the ring": {
		`RING of 3 waits; none has a limit that is known
    #\S+ charge  joins #\S+ \w+.balance
    #\S+ \w+.balance  waits in worker ledger, which runs #\S+ \w+.checkout.func2
    #\S+ \w+.checkout.func2  awaits #\S+ charge
`, `✗ ring #\S+ charge joins → #\S+ \w+.balance waits in worker ledger, which runs → #\S+ \w+.checkout.func2 awaits → #\S+ charge`,
	},
	"the straggler": {
		`STRAGGLER #\S+ fetch: told to stop by \*async.TimeoutError: .*limit 2s.*; running`,
		`! straggler #\S+ fetch was told to stop: \*async.TimeoutError: .*limit 2s.*and is still running`,
	},
	"the slot": {
		`FULL limit 1 of #\S+ uploads: 3 queued, held by #\S+ upload 1`,
		`■ full limit 1 of #\S+ uploads : 3 queued.*held by #\S+ upload 1 \(running`,
	},
	"the starving queue": {
		`(?s)waits for queue: a job.*waits for queue: a job`,
		`for a job of queue`,
	},
}

func TestCurlAndThePageNameEachFault(t *testing.T) {
	p, _, ask := start(t)
	curl := ask("", "*/*")
	document := regexp.MustCompile(`(?s)<(script|style)>.*?</(script|style)>`).ReplaceAllString(ask("", "text/html"), "")
	page := strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(document, " ")), " ")
	for name, fault := range faults {
		assert.Regexp(t, fault.curl, curl, name)
		assert.Regexp(t, fault.page, page, name)
	}
	stacks := ask("?stacks=1", "*/*")
	assert.Regexp(t, `\w+.crawl.func1\s+hang/shop.go:\d+`, stacks)
	assert.Regexp(t, `\w+.upload\s+hang/shop.go:\d+`, stacks)
	p.Signal(syscall.SIGTERM)
	assert.Equal(t, 143, p.Wait(), p.Stderr())
}

// The text in README.md is what the program says, but for times, sizes and IDs.
func TestTheREADMEShowsWhatTheProgramSays(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(readme), "```\nasync tree of ")
	shown, _, ok := strings.Cut(rest, "```\n")
	require.True(t, ok)
	_, _, ask := start(t)
	assert.Equal(t, steady("async tree of "+shown), steady(ask("", "*/*")))
}

// steady returns text without its first line, and without what changes from run to run: IDs, the widths of columns, the name of
// the package, and what the page itself does.
func steady(text string) string {
	_, text, _ = strings.Cut(text, "\n")
	for _, change := range []struct{ from, to string }{
		{`#\d+\.\d+`, "#N"}, {`sleeps, \S+ left`, "running"}, {` +`, " "}, {`(?m) $`, ""}, {`\bmain\.`, "hang."},
		{`(?m)^.* GET / .*\n`, ""}, {`(asyncz future running).*`, "$1"},
	} {
		text = regexp.MustCompile(change.from).ReplaceAllString(text, change.to)
	}
	return text
}
