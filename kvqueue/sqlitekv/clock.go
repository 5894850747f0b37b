package sqlitekv

import "time"

// A clock returns the time in µs, by which sessions end.
type clock func() int64

// wallClock is the clock where processes share no better one: who sets the clock of the machine
// ends sessions early, or late.
func wallClock() int64 { return time.Now().UnixMicro() }
