package measure

import "time"

// Turns has runs take turns for so many rounds, and returns the values of each. In each round another
// run is the first, so that none gains by its place.
func Turns(rounds int, runs ...func() float64) []Sample {
	samples := make([]Sample, len(runs))
	for round := range rounds {
		for i := range runs {
			i = (i + round) % len(runs)
			samples[i] = append(samples[i], runs[i]())
		}
	}
	return samples
}

// A Work does n units. It panics if something comes out wrong.
type Work func(n int)

// Took returns how many nanoseconds a unit takes in a run of n.
func (w Work) Took(n int) float64 {
	start := time.Now()
	w(n)
	return float64(time.Since(start)) / float64(n)
}

// Enough returns how many units take about as long as slice.
func (w Work) Enough(slice time.Duration) int {
	for n := 1; ; n *= 2 {
		start := time.Now()
		w(n)
		if d := time.Since(start); d > slice/2 || n >= 1<<22 {
			return max(1, int(float64(n)*float64(slice)/float64(max(d, 1))))
		}
	}
}
