package main

import (
	"bytes"
	"context"
	"runtime/pprof"
	"strings"
	"sync/atomic"

	"github.com/google/pprof/profile"

	"github.com/ambit-go/ambit/bench/internal/measure"
)

// This file is how much of the processor time of the crawl of B10 is the library's. There are two definitions. The budget is
// about the first: the share of the samples of a profile that were taken within functions of ambit. The work that those have the
// runtime do (to start a goroutine, make its stack larger, allocate, park, set a timer) is time of the runtime,
// as it is where the same is written by hand. The second is all that the same work on one goroutine does not take: it has the runtime's
// part, too, so that it says what it costs to have each step be a task, with whatever library.

// shareRows is both shares.
func shareRows(cfg config) []measure.Row {
	return append([]measure.Row{profiledShare(cfg)}, moreThanAlone(cfg)...)
}

// profiledCrawls is how many crawls are profiled in a turn: enough for some hundred samples.
const profiledCrawls = 10

func profiledShare(cfg config) measure.Row {
	row := measure.Row{ID: "B10", What: "share of the samples of a profile that are in functions of ambit", Unit: "%", Budget: measure.AtMost(25)}
	row.Ours = measure.Turns(cfg.rounds, func() float64 {
		var text bytes.Buffer
		must(pprof.StartCPUProfile(&text))
		crawlWith(crawlOurs)(profiledCrawls)
		pprof.StopCPUProfile()
		samples, err := profile.Parse(&text)
		must(err)
		return 100 * shareOf(samples, "github.com/ambit-go/ambit/")
	})[0]
	return row
}

// shareOf returns the share of the samples whose innermost function is of a package with the prefix, but not of this program.
func shareOf(p *profile.Profile, prefix string) float64 {
	const bench = "github.com/ambit-go/ambit/bench/"
	var in, all int64
	for _, s := range p.Sample {
		all += s.Value[0]
		if len(s.Location) == 0 || len(s.Location[0].Line) == 0 {
			continue
		}
		name := s.Location[0].Line[0].Function.Name // of inlined functions the innermost is the first
		if strings.HasPrefix(name, prefix) && !strings.HasPrefix(name, bench) {
			in += s.Value[0]
		}
	}
	return float64(in) / float64(max(1, all))
}

// moreThanAlone is how much of the processor time the same work on one goroutine does not take, for ours and for the others.
func moreThanAlone(cfg config) (rows []measure.Row) {
	crawls := []struct {
		name  string
		crawl func(ctx context.Context, done *atomic.Int64) error
	}{{"ambit", crawlOurs}, {"the blog's library, rewritten", crawlBlog}, {"errgroup, time limits by hand", crawlByHand}, {"", crawlAlone}}
	var runs []func() float64
	for _, c := range crawls {
		runs = append(runs, func() float64 {
			start := cpu()
			crawlWith(c.crawl)(1)
			return float64(cpu() - start)
		})
	}
	spent := measure.Turns(cfg.rounds, runs...)
	alone := spent[len(spent)-1]
	for i, c := range crawls[:len(crawls)-1] {
		row := measure.Row{ID: "B10", What: "processor time that one goroutine does not take, with what the runtime does: " + c.name, Unit: "%"}
		for _, r := range measure.Ratios(alone, spent[i]) {
			row.Ours = append(row.Ours, 100*(1-r))
		}
		rows = append(rows, row)
	}
	return rows
}
