package sums

import "time"

// classes are those of a Spread: up to 1 ms, 2 ms, 4 ms and so on up to 17 minutes, and longer.
const classes = 22

// A Spread is how long some things have lasted.
type Spread struct {
	Sum time.Duration
	By  [classes]int64 // how many, by class
}

// Bound returns how long what is in a class has lasted at most; 0 for the last, which has no bound.
func Bound(class int) time.Duration {
	if class >= classes-1 {
		return 0
	}
	return time.Millisecond << class
}

// Note adds one.
func (s *Spread) Note(d time.Duration) {
	d = max(d, 0)
	class := 0
	for class < classes-1 && d > Bound(class) {
		class++
	}
	s.By[class]++
	s.Sum += d
}

func (s *Spread) add(o *Spread) {
	s.Sum += o.Sum
	for i, n := range o.By {
		s.By[i] += n
	}
}

// N is how many there are.
func (s *Spread) N() (n int64) {
	for _, some := range s.By {
		n += some
	}
	return n
}

// Mean is how long they have lasted on average; 0 if there are none.
func (s *Spread) Mean() time.Duration {
	return s.Sum / time.Duration(max(s.N(), 1))
}

// Stuck is how long one may last until it is told to be stuck: ten times as long as 99 of 100, if so many are known,
// and from least to most. A nil Spread has none.
func (s *Spread) Stuck(least, most time.Duration) time.Duration {
	if s == nil || s.N() < 100 {
		return most
	}
	return min(most, max(10*s.Most(0.99), least))
}

// Most is how long a part of them has lasted at most, such as 0.99. It is the bound of a class, so the truth may be
// half of it.
func (s *Spread) Most(part float64) time.Duration {
	total := s.N()
	if total == 0 {
		return 0
	}
	seen := int64(0)
	for class, n := range s.By {
		if seen += n; float64(seen) >= part*float64(total) {
			if class == classes-1 {
				return 2 * Bound(class-1)
			}
			return Bound(class)
		}
	}
	return 0
}
