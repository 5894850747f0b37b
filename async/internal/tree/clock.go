package tree

import "time"

// epoch is when our clock began. Reading it costs half of a time.Now.
var epoch = time.Now()

// Clock returns the time since the program began, on a clock that nobody sets.
func Clock() time.Duration { return time.Since(epoch) }

// inBubble reports whether now was read in a synctest bubble, whose clock begins in 2000.
func inBubble(now time.Duration) bool { return now < 0 }

// InBubble reports whether the caller is in a synctest bubble.
func InBubble() bool { return inBubble(Clock()) }
