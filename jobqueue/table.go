package jobqueue

// A table is a map that gives memory back. A Go map keeps the size that it once
// had; a table that has lost seven eighths of what was in it is made anew, which
// costs each removal a constant time on average.
type table[K comparable, V any] struct {
	m    map[K]V
	peak int // the most that were in m since it was made
}

// minPeak is the size below which a table is not made anew.
const minPeak = 1024

func (t *table[K, V]) init() { t.m = make(map[K]V) }

// get returns the value of key, the zero value if there is none.
func (t *table[K, V]) get(key K) V { return t.m[key] }

func (t *table[K, V]) put(key K, value V) {
	t.m[key] = value
	t.peak = max(t.peak, len(t.m))
}

func (t *table[K, V]) remove(key K) {
	delete(t.m, key)
	if t.peak > minPeak && len(t.m) < t.peak/8 {
		t.shrink()
	}
}

// shrink moves the elements to a map of their number.
func (t *table[K, V]) shrink() {
	small := make(map[K]V, len(t.m))
	for key, value := range t.m {
		small[key] = value
	}
	t.m, t.peak = small, len(small)
}
