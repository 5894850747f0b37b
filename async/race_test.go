package async_test

import (
	"runtime/debug"
	"slices"
)

// raceFactor divides the counts of tests that are about amounts. The race
// detector makes everything ten times slower and needs more memory, so that
// under it they do a fiftieth. `make test` also runs them without it.
var raceFactor = map[bool]int{false: 1, true: 50}[underRace()]

// underRace says whether the race detector was built into this test.
func underRace() bool {
	build, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(build.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// fewer returns n, or under the race detector so many less, but at least least.
func fewer(n, least int) int { return min(n, max(n/raceFactor, least)) }
