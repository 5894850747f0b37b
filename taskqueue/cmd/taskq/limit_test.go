package main

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
)

func TestLimitsAreSetListedAndLifted(t *testing.T) {
	store := newStore(t)
	status, _, errs := taskq(t, store, "limit", "-concurrency", "2", "-rate", "1.5", "tenant-*")
	assert.Zero(t, status, errs)
	status, out, errs := taskq(t, store, "limit", "-type", "mail", "-concurrency", "1", "-json")
	assert.Zero(t, status, errs)
	assert.JSONEq(t, `{"type": "mail", "concurrency": 1}`, out)
	_, out, _ = taskq(t, store, "limit")
	assert.Regexp(t, `(?m)^tenant-\*\s+2\s+1\.5\s+0$`, out)
	assert.Regexp(t, `(?m)^\s+mail\s+1\s+0\s+0$`, out)
	_, out, _ = taskq(t, store, "stats")
	assert.Contains(t, out, "limits=2")
	_, _, _ = taskq(t, store, "limit", "tenant-*")
	_, out, _ = taskq(t, store, "limit", "-json")
	assert.JSONEq(t, `{"type": "mail", "concurrency": 1}`, out)
	for _, wrong := range [][]string{{"limit", "a", "b"}, {"limit", "-type", "t", "a"}, {"limit", "-concurrency", "1"}, {"limit", "-concurrency", "-1", "a"}} {
		status, _, errs := taskq(t, store, wrong...)
		assert.Equal(t, 2, status, errs)
	}
}

func TestATaskThatALimitKeepsIsShownSo(t *testing.T) {
	store := newStore(t)
	_, _, _ = taskq(t, store, "limit", "-concurrency", "1", "-queue", "keys", "k")
	for _, id := range []string{"a", "b"} {
		status, _, errs := taskq(t, store, "enqueue", "-queue", "keys", "-type", "t", "-limit-key", "k", "-id", id, "x")
		assert.Zero(t, status, errs)
	}
	claimOne(t, store, "keys")
	claimOne(t, store, "keys")
	_, out, _ := taskq(t, store, "list", "-queue", "keys")
	assert.Regexp(t, `(?m)^b\s+ready, limited\s+t`, out)
	_, out, _ = taskq(t, store, "show", "-queue", "keys", "b")
	assert.Regexp(t, `(?m)^state\s+ready, limited$`, out)
	assert.Regexp(t, `(?m)^limit key\s+k$`, out)
	_, out, _ = taskq(t, store, "stats", "keys")
	assert.Contains(t, out, "limits=1 limited=1")
}

// claimOne claims a task, if there is one.
func claimOne(t *testing.T, url, queue string) {
	s, err := taskqueue.Open(t.Context(), url)
	require.NoError(t, err)
	_, err = s.Claim(t.Context(), taskqueue.ClaimRequest{Queue: queue, Worker: rand.Text(), Nonce: "1", Max: 1, Lease: time.Hour})
	require.NoError(t, err)
	require.NoError(t, s.Close())
}
