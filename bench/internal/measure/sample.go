// Package measure has the one loop that every program of bench measures with, what it makes of
// the measured values, and the rows in which programs hand them on.
package measure

import (
	"math"
	"slices"
)

// A Sample holds what was measured of one thing: a value a round, in the order of the rounds.
type Sample []float64

// Median returns the value in the middle, or NaN if there is none.
func (s Sample) Median() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// confidence is how sure it is that the true median lies in an Interval.
const confidence = 0.95

// Interval returns two values of the sample between which the true median lies, with a probability of 95 % or
// more, whatever the distribution of the values is. Fewer than 6 values cannot say so much: then
// it is the smallest and the largest.
func (s Sample) Interval() (low, high float64) {
	if len(s) == 0 {
		return math.NaN(), math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	k := 0
	for k+1 < len(s)-1-(k+1) && coverage(len(s), k+1) >= confidence {
		k++
	}
	return sorted[k], sorted[len(s)-1-k]
}

// coverage returns the probability that the true median lies between the values k (from 0) and n-1-k of n sorted ones:
// each value is below the median with probability 1/2, so the number of those below it is binomial.
func coverage(n, k int) float64 {
	outside, binomial := 0.0, math.Pow(0.5, float64(n))
	for i := 0; i <= k; i++ {
		outside += 2 * binomial
		binomial *= float64(n-i) / float64(i+1)
	}
	return 1 - outside
}

// Spread returns how wide the interval is, as a share of the median.
func (s Sample) Spread() float64 {
	low, high := s.Interval()
	return (high - low) / math.Abs(s.Median())
}

// Ratios returns a / b of each round.
func Ratios(a, b Sample) Sample {
	ratios := make(Sample, min(len(a), len(b)))
	for i := range ratios {
		ratios[i] = a[i] / b[i]
	}
	return ratios
}
