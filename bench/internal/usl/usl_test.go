package usl

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func made(l Law, noise float64, ns ...float64) (points []Point) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range ns {
		points = append(points, Point{n, l.At(n) * (1 + noise*(2*random.Float64()-1))})
	}
	return points
}

var powers = []float64{1, 2, 4, 8, 16, 32, 64}

func TestFitRecoversTheParameters(t *testing.T) {
	for name, l := range map[string]Law{
		"contention and coherency":         {1000, 0.05, 0.0005},
		"peaks among the points":           {3e6, 0.1, 0.02},
		"kappa is 0: Amdahl":               {250, 0.2, 0},
		"sigma is 0":                       {250, 0, 0.001},
		"linear":                           {42, 0, 0},
		"nothing is done at the same time": {1e9, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Fit(made(l, 0, powers...))
			require.NoError(t, err)
			require.InEpsilon(t, l.Lambda, got.Lambda, 1e-6)
			require.InDelta(t, l.Sigma, got.Sigma, 1e-6)
			require.InDelta(t, l.Kappa, got.Kappa, 1e-6)
			require.Less(t, got.Off(made(l, 0, powers...)), 1e-6)
		})
	}
}

func TestFitBearsNoise(t *testing.T) {
	l := Law{1000, 0.08, 0.001}
	points := made(l, 0.03, append(powers, powers...)...)
	got, err := Fit(points)
	require.NoError(t, err)
	require.InEpsilon(t, l.Lambda, got.Lambda, 0.05)
	require.InDelta(t, l.Sigma, got.Sigma, 0.03)
	require.InEpsilon(t, l.Peak(), got.Peak(), 0.15)
	require.Less(t, got.Off(points), 0.08)
}

func TestPeak(t *testing.T) {
	l := Law{1000, 0.1, 0.009}
	require.InDelta(t, 10, l.Peak(), 1e-9)
	require.Greater(t, l.Most(), l.At(9.5))
	require.Greater(t, l.Most(), l.At(10.5))
	require.InDelta(t, l.At(l.Peak()), l.Most(), 1e-9)

	amdahl := Law{1000, 0.1, 0}
	require.True(t, math.IsInf(amdahl.Peak(), 1))
	require.InDelta(t, 10_000, amdahl.Most(), 1e-9)
	require.Less(t, amdahl.At(1e6), amdahl.Most())

	require.Equal(t, 1.0, Law{1000, 1.2, 0.1}.Peak())
	require.Equal(t, 1.0, Law{1000, 0.5, 4}.Peak(), "it never peaks below one")
}

// Throughput that grows faster than N is beyond the law: the nearest is linear, and Off says how far it is.
func TestFitOfMoreThanLinear(t *testing.T) {
	points := []Point{{1, 100}, {2, 220}, {4, 480}, {8, 1050}}
	got, err := Fit(points)
	require.NoError(t, err)
	require.Zero(t, got.Sigma)
	require.Zero(t, got.Kappa)
	require.Greater(t, got.Off(points), 0.1)
}

func TestFitRefuses(t *testing.T) {
	for name, points := range map[string][]Point{
		"too few":           {{1, 1}, {2, 2}, {2, 3}, {4, 4}},
		"nothing done":      {{1, 1}, {2, 0}, {3, 3}, {4, 4}},
		"N below 1":         {{0.5, 1}, {2, 2}, {3, 3}, {4, 4}},
		"not a number":      {{1, 1}, {2, math.NaN()}, {3, 3}, {4, 4}},
		"endless, measured": {{1, 1}, {2, math.Inf(1)}, {3, 3}, {4, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Fit(points)
			require.Error(t, err)
		})
	}
}
