package main

import (
	"fmt"
	"io"
	"math"

	"github.com/ambit-go/ambit/bench/internal/measure"
	"github.com/ambit-go/ambit/bench/internal/usl"
)

// farOff is how far a law may be from a point for its parameters to be told.
const farOff = 0.25

// fitted returns the law of a curve; why says that there is none.
func fitted(c measure.Curve) (law usl.Law, why string) {
	var points []usl.Point
	for _, p := range c.Points {
		points = append(points, usl.Point{N: float64(p.N), X: p.X.Median()})
	}
	law, err := usl.Fit(points)
	switch {
	case err == usl.ErrTooFew:
		return law, fmt.Sprintf("%d points are too few for a fit", len(points))
	case err != nil:
		return law, err.Error()
	case law.Off(points) > farOff:
		return law, fmt.Sprintf("no fit: the law is off by up to %.0f %%", 100*law.Off(points))
	}
	return law, ""
}

// best returns the point with the highest throughput, and the first that has 90 % of that: there it stops scaling.
func best(c measure.Curve) (most, enough measure.Point) {
	for _, p := range c.Points {
		if len(most.X) == 0 || p.X.Median() > most.X.Median() {
			most = p
		}
	}
	for _, p := range c.Points {
		if p.X.Median() >= 0.9*most.X.Median() {
			return most, p
		}
	}
	return most, most
}

// rate prints a throughput with three digits.
func rate(x float64) string {
	switch {
	case math.IsInf(x, 1):
		return "no bound"
	case x >= 999_500:
		return fmt.Sprintf("%.3g M/s", x/1e6)
	case x >= 999.5:
		return fmt.Sprintf("%.3g k/s", x/1e3)
	}
	return fmt.Sprintf("%.3g /s", x)
}

// peak prints where a law peaks, and says whether that was measured.
func peak(c measure.Curve, law usl.Law) string {
	at := law.Peak()
	last := c.Points[len(c.Points)-1].N
	switch {
	case math.IsInf(at, 1):
		return "never"
	case at > float64(last):
		return fmt.Sprintf("%.0f, beyond the %d measured", at, last)
	}
	return fmt.Sprintf("%.1f", at)
}

func showCurve(w io.Writer, c measure.Curve) {
	_, _ = fmt.Fprintf(w, "%-5s%s: %s\n", c.ID, c.Group, c.What)
	for _, p := range c.Points {
		low, high := p.X.Interval()
		_, _ = fmt.Fprintf(w, "%9d %-10s %10s (%s–%s)\n", p.N, c.Axis, rate(p.X.Median()), rate(low), rate(high))
	}
	law, why := fitted(c)
	if why == "" {
		why = fmt.Sprintf("one: %s, sigma %.3f, kappa %.5f, peak at %s", rate(law.Lambda), law.Sigma, law.Kappa, peak(c, law))
	}
	_, _ = fmt.Fprintf(w, "     %s\n", why)
}

func kingmanLine(q measure.Queue) string {
	return fmt.Sprintf("%-5sbusy %.0f %% of the time: jobs wait %.2f ms, Kingman says %.2f ms", q.ID, 100*q.Load, q.Waited/1e6, q.Kingman/1e6)
}
