package taskqueue

import (
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestAProgramKnowsWhenItWasMade also if it was built outside of a repository, as tests are.
func TestAProgramKnowsWhenItWasMade(t *testing.T) {
	assert.False(t, madeAt().IsZero())
	assert.Less(t, time.Since(madeAt()), 24*time.Hour, "the file of a test is new")
	at := debug.BuildSetting{Key: "vcs.time", Value: "2026-11-24T01:02:03Z"}
	assert.Equal(t, time.Date(2026, 11, 24, 1, 2, 3, 0, time.UTC), commitTime([]debug.BuildSetting{at, {Key: "vcs.modified", Value: "false"}}))
	assert.Zero(t, commitTime([]debug.BuildSetting{at, {Key: "vcs.modified", Value: "true"}}))
	assert.Zero(t, commitTime(nil))
}
