package tree

import "time"

// epoch is when our clock began. Reading it costs half of a time.Now.
var epoch = time.Now()

func Clock() time.Duration { return time.Since(epoch) }

// inBubble reports whether now was read in a synctest bubble, whose clock begins in 2000.
func inBubble(now time.Duration) bool { return now < 0 }
