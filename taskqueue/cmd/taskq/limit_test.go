package main

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

func TestLimitsAreSetListedAndLifted(t *testing.T) {
	url := newStore(t)
	status, _, errs := taskq(t, url, "limit", "-concurrency", "2", "-rate", "1.5", "tenant-*")
	assert.Zero(t, status, errs)
	status, out, errs := taskq(t, url, "limit", "-type", "mail", "-concurrency", "1", "-json")
	assert.Zero(t, status, errs)
	assert.JSONEq(t, `{"type": "mail", "concurrency": 1}`, out)
	_, out, _ = taskq(t, url, "limit")
	assert.Regexp(t, `(?m)^tenant-\*\s+2\s+1\.5\s+0$`, out)
	assert.Regexp(t, `(?m)^\s+mail\s+1\s+0\s+0$`, out)
	_, out, _ = taskq(t, url, "stats")
	assert.Contains(t, out, "limits=2")
	_, _, _ = taskq(t, url, "limit", "tenant-*")
	_, out, _ = taskq(t, url, "limit", "-json")
	assert.JSONEq(t, `{"type": "mail", "concurrency": 1}`, out)
	for _, wrong := range [][]string{{"limit", "a", "b"}, {"limit", "-type", "t", "a"}, {"limit", "-concurrency", "1"}, {"limit", "-concurrency", "-1", "a"}} {
		status, _, errs := taskq(t, url, wrong...)
		assert.Equal(t, 2, status, errs)
	}
}

func TestATaskThatALimitKeepsIsShownSo(t *testing.T) {
	url := newStore(t)
	_, _, _ = taskq(t, url, "limit", "-concurrency", "1", "-queue", "keys", "k")
	for _, id := range []string{"a", "b"} {
		status, _, errs := taskq(t, url, "enqueue", "-queue", "keys", "-type", "t", "-limit-key", "k", "-id", id, "x")
		assert.Zero(t, status, errs)
	}
	claimOne(t, url, "keys")
	claimOne(t, url, "keys")
	_, out, _ := taskq(t, url, "list", "-queue", "keys")
	assert.Regexp(t, `(?m)^b\s+ready, limited\s+t`, out)
	_, out, _ = taskq(t, url, "show", "-queue", "keys", "b")
	assert.Regexp(t, `(?m)^state\s+ready, limited$`, out)
	assert.Regexp(t, `(?m)^limit key\s+k$`, out)
	_, out, _ = taskq(t, url, "stats", "keys")
	assert.Contains(t, out, "limits=1 limited=1")
}

// claimOne claims a task, if there is one.
func claimOne(t *testing.T, url, queue string) {
	s, err := taskqueue.Open(t.Context(), url)
	require.NoError(t, err)
	_, err = s.Claim(t.Context(), store.ClaimRequest{Queue: queue, Worker: rand.Text(), Nonce: "1", Max: 1, Lease: time.Hour})
	require.NoError(t, err)
	require.NoError(t, s.Close())
}
