package relational

import "time"

// longest is how long those who wait sleep at most between two looks.
const longest = 40 * time.Millisecond

// Pause returns how long to sleep between two looks at whose turn it is, when nothing has
// happened for quiet: least, and after long quiet a part of it, so that looking costs next to
// nothing and the wait hardly gets longer by it.
func Pause(least, quiet time.Duration) time.Duration {
	return max(least, min(quiet/250, longest))
}
