package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// A table is printed as it grows, one row after another.
type table struct{ widths []int }

func (t table) row(cells ...string) {
	var b strings.Builder
	for i, cell := range cells {
		if i > 0 {
			b.WriteString(" | ")
		}
		fmt.Fprintf(&b, "%-*s", t.widths[i], cell)
	}
	fmt.Println(strings.TrimRight(b.String(), " "))
}

// kept says whether a budget is, for the last column.
func kept(ok bool) string {
	if ok {
		return "ok"
	}
	return "OVER"
}

// A run does n units and returns how long that took.
type run func(n int) time.Duration

// rates has two runs take turns, each being first in every other turn. It returns
// the medians of the units a second of each, and of the ratios of the turns.
func rates(rounds, n int, ours, peer run) (us, them, ratio float64) {
	var a, b, ratios []float64
	for i := range rounds {
		runs := []run{ours, peer}
		to := []*[]float64{&a, &b}
		for k := range runs {
			k = (k + i) % 2
			*to[k] = append(*to[k], float64(n)/runs[k](n).Seconds())
		}
		ratios = append(ratios, a[i]/b[i])
	}
	return quantile(a, 0.5), quantile(b, 0.5), quantile(ratios, 0.5)
}

// quantile returns the value below which the share p of all is.
func quantile[T cmp.Ordered](all []T, p float64) T {
	all = slices.Sorted(slices.Values(all))
	return all[min(int(p*float64(len(all))), len(all)-1)]
}

func perSecond(rate float64) string { return fmt.Sprintf("%.0f /s", rate) }

func millis(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}

// together calls f n times with the numbers from 0, on some goroutines, and returns
// how long that took.
func together(goroutines, n int, f func(i int)) time.Duration {
	var wg sync.WaitGroup
	start := time.Now()
	for g := range goroutines {
		wg.Go(func() {
			for i := g; i < n; i += goroutines {
				f(i)
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}
