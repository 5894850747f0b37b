package explore

import "slices"

// shrink leaves deviations out as long as what is left fails, in parts that
// become smaller (Zeller and Hildebrandt's delta debugging), and returns them.
// It tries at most budget times.
func shrink(all []deviation, budget int, fails func([]deviation) bool) []deviation {
	if len(all) > 0 && fails(nil) {
		return nil
	}
	for size := (len(all) + 1) / 2; size > 0 && budget > 0; {
		smaller := false
		for from := 0; from < len(all) && budget > 0; {
			rest := slices.Concat(all[:from], all[min(from+size, len(all)):])
			budget--
			if fails(rest) {
				all, smaller = rest, true
			} else {
				from += size
			}
		}
		switch {
		case size > 1:
			size = (size + 1) / 2
		case !smaller:
			size = 0
		}
	}
	return all
}
