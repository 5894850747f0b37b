// Package classes says in which order a claim looks at the classes of priority.
package classes

import "math/rand/v2"

// N is the number of classes. 0 is the most urgent here.
const N = 8

// Order returns the classes in the order in which they are looked at. With a seed
// each has twice the chance to be next of the one behind it; without, 0, they are
// in order.
func Order(seed uint64) []int {
	order := make([]int, N)
	for i := range order {
		order[i] = i
	}
	if seed == 0 {
		return order
	}
	weight := func(class int) int { return 1 << (N - 1 - class) }
	rnd := rand.New(rand.NewPCG(seed, 0))
	for i := range order {
		sum := 0
		for _, class := range order[i:] {
			sum += weight(class)
		}
		at, j := rnd.IntN(sum), i
		for at >= weight(order[j]) {
			at -= weight(order[j])
			j++
		}
		order[i], order[j] = order[j], order[i]
	}
	return order
}
