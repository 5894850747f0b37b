package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTasksThatWaitForOthersAreShown(t *testing.T) {
	store := newStore(t)
	for _, id := range []string{"second", "third"} {
		status, _, errs := taskq(t, store, "enqueue", "-id", id, "-after", "first", "-on-failed", "wait", "x")
		assert.Zero(t, status, errs)
	}
	status, _, errs := taskq(t, store, "enqueue", "-id", "last", "-after", "second", "-after", "third", "x")
	assert.Zero(t, status, errs)
	_, out, _ := taskq(t, store, "list", "-state", "waiting")
	assert.Contains(t, out, "after first")
	assert.Contains(t, out, "after second, third")
	_, out, _ = taskq(t, store, "show", "second")
	assert.Regexp(t, `(?m)^state +waiting$`, out)
	assert.Regexp(t, `(?m)^after +first$`, out)
	assert.Regexp(t, `(?m)^if one fails +wait$`, out)
	_, out, _ = taskq(t, store, "stats")
	assert.Regexp(t, `WAITING +LATE`, out)
	assert.Regexp(t, `default +1 +0 +0 +0 +0 +0 +0 +3 `, out)
	status, _, errs = taskq(t, store, "enqueue", "-after", "nobody", "x")
	assert.Equal(t, 2, status)
	assert.Contains(t, errs, `task "nobody", which queue default does not know`)
	status, out, errs = taskq(t, store, "purge", "waiting")
	assert.Zero(t, status, errs)
	assert.Contains(t, out, "3")
}
