// Package usl fits Gunther's universal scalability law to throughput:
//
//	X(N) = λ N / (1 + σ (N-1) + κ N (N-1))
//
// N is how many do the work at the same time, λ what one of them would do alone, σ the contention (the share of the
// work that only one can do at a time) and κ the coherency (what each pair spends to agree). With κ = 0 it
// is Amdahl's law. N. J. Gunther, Guerrilla Capacity Planning, Springer 2007.
package usl

import (
	"errors"
	"math"
)

// A Point is a throughput that was measured with N at work.
type Point struct{ N, X float64 }

// A Law is the law with its parameters.
type Law struct{ Lambda, Sigma, Kappa float64 }

// At returns the throughput with n at work.
func (l Law) At(n float64) float64 {
	return l.Lambda * n / (1 + l.Sigma*(n-1) + l.Kappa*n*(n-1))
}

// Peak returns with how many at work the throughput is greatest, at least 1; infinity if it never falls.
func (l Law) Peak() float64 {
	switch {
	case l.Sigma >= 1:
		return 1
	case l.Kappa == 0:
		return math.Inf(1)
	}
	return max(1, math.Sqrt((1-l.Sigma)/l.Kappa))
}

// Most returns the throughput that is never exceeded: that at the peak, or Amdahl's λ / σ.
func (l Law) Most() float64 {
	if peak := l.Peak(); !math.IsInf(peak, 1) {
		return l.At(peak)
	}
	return l.Lambda / l.Sigma // +Inf if nothing holds it back
}

// Off returns by which share of the measured value the law is off where it is off most.
func (l Law) Off(points []Point) float64 {
	worst := 0.0
	for _, p := range points {
		worst = max(worst, math.Abs(l.At(p.N)-p.X)/p.X)
	}
	return worst
}

// ErrTooFew is returned for points with fewer than four different N: three parameters go through any three.
var ErrTooFew = errors.New("usl: fewer than four different N")

// Fit returns the law that is nearest to the points, by least squares of the relative deviations.
//
// N/X is linear in 1/λ, σ/λ and κ/λ, so there is nothing to iterate. Neither σ nor κ is below 0: where the squares
// would be least below, the parameter is 0.
func Fit(points []Point) (Law, error) {
	different := map[float64]bool{}
	for _, p := range points {
		if !(p.N >= 1 && p.X > 0) || math.IsInf(p.X, 1) {
			return Law{}, errors.New("usl: N below 1, or a throughput that is not positive")
		}
		different[p.N] = true
	}
	if len(different) < 4 {
		return Law{}, ErrTooFew
	}
	best, least := Law{}, math.Inf(1)
	for _, terms := range [][]int{{0, 1, 2}, {0, 1}, {0, 2}, {0}} {
		k, ok := solve(points, terms)
		if !ok || k[0] <= 0 || k[1] < 0 || k[2] < 0 {
			continue
		}
		if s := squares(points, k); s < least {
			best, least = Law{1 / k[0], k[1] / k[0], k[2] / k[0]}, s
		}
	}
	return best, nil
}

// term returns by what the k-th coefficient of N/X is multiplied.
func term(k int, n float64) float64 { return [...]float64{1, n - 1, n * (n - 1)}[k] }

// squares returns the sum of the squared relative deviations of N/X.
func squares(points []Point, k [3]float64) (sum float64) {
	for _, p := range points {
		d := 1 - (k[0]+k[1]*term(1, p.N)+k[2]*term(2, p.N))*p.X/p.N
		sum += d * d
	}
	return sum
}

// solve returns the coefficients of some terms with the least squares; the others are 0.
func solve(points []Point, terms []int) (k [3]float64, ok bool) {
	n := len(terms)
	rows := make([][]float64, n) // the normal equations, with the right side as last column
	for i := range rows {
		rows[i] = make([]float64, n+1)
		for _, p := range points {
			weight := p.X / p.N
			a := term(terms[i], p.N) * weight
			for j := range n {
				rows[i][j] += a * term(terms[j], p.N) * weight
			}
			rows[i][n] += a
		}
	}
	if !eliminate(rows) {
		return k, false
	}
	for i, t := range terms {
		k[t] = rows[i][n]
	}
	return k, true
}

// eliminate solves linear equations in place, with the largest pivot of each column; false if they have not one solution.
func eliminate(rows [][]float64) bool {
	for i := range rows {
		for j := i + 1; j < len(rows); j++ {
			if math.Abs(rows[j][i]) > math.Abs(rows[i][i]) {
				rows[i], rows[j] = rows[j], rows[i]
			}
		}
		pivot := rows[i][i]
		if pivot == 0 {
			return false
		}
		for c := range rows[i] {
			rows[i][c] /= pivot
		}
		for j := range rows {
			if factor := rows[j][i]; j != i {
				for c := range rows[j] {
					rows[j][c] -= factor * rows[i][c]
				}
			}
		}
	}
	return true
}
