package scheduler

import (
	"runtime/debug"
	"slices"
)

// RaceFactor divides the counts of tests that are about amounts, of those from
// outside, too: the race detector makes everything ten times slower and needs
// more memory.
var RaceFactor = map[bool]int{false: 1, true: 20}[underRace()]

// underRace says whether the race detector was built into this test.
func underRace() bool {
	build, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(build.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
