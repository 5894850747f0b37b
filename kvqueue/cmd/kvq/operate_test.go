package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestQueuesAreListed(t *testing.T) {
	s := newSession(t)
	for _, name := range []string{"orders", "a/b", "\xff\n", "two words"} {
		s.ok("", "put", "-quiet", "-queue", name, "x")
	}
	s.ok("", "put", "-quiet", "-prefix", "shop", "x")
	assert.Equal(t, "a/b\norders\n\"two words\"\n\"\\xff\\n\"\n", s.ok("", "queues"))
	assert.Equal(t, "default\n", s.ok("", "queues", "-prefix", "shop"))
	assert.Empty(t, s.ok("", "queues", "-prefix", "none"))
	assert.Contains(t, s.ok("", "queues", "-json"), "{\"queue\":\"two words\"}\n{\"base64\":\"/wo=\"}\n")
}

// Deleted items do not come back: purge and discard ask for the name of the queue.
func TestPurgeAsksForTheName(t *testing.T) {
	s := newSession(t)
	for _, name := range []string{"orders", "a/b\n"} {
		s.ok("", "put", "-quiet", "-queue", name, "one", "two", "three")
	}
	for _, answer := range []string{"", "\n", "yes\n", "order\n"} {
		status, out, errs := s.kvq(answer, "purge", "-queue", "orders")
		assert.Equal(t, 1, status)
		assert.Empty(t, out)
		assert.Contains(t, errs, "this deletes ready items of queue orders in ")
		assert.Contains(t, errs, "nothing was deleted")
	}
	assert.Equal(t, "3\n", s.ok("", "len", "-queue", "orders"))
	assert.Equal(t, "0 items deleted\n", s.ok("", "purge", "-queue", "orders", "-yes", "-older", "1h"))
	assert.Equal(t, "1 items deleted\n", s.ok("orders\n", "purge", "-queue", "orders", "-n", "1"))
	assert.Equal(t, "2 items deleted\n", s.ok("orders", "purge", "-queue", "orders", "-younger", "1h"))
	assert.Equal(t, "3 items deleted\n", s.ok(`"a/b\n"`+"\n", "purge", "-queue", "a/b\n"))
	assert.Equal(t, "0\n", s.ok("", "len", "-queue", "orders"))
	assert.Contains(t, s.ok("", "doctor", "-queue", "orders"), "0 faults")
}

func TestDeadLettersAreChosenByFlags(t *testing.T) {
	s := newSession(t)
	s.ok("", "put", "-quiet", "paper 1", "fire 1", "paper 2", "fire 2", "paper 3")
	_, _, _ = s.kvq("", "take", "-until-empty", "-attempts", "1", "--", "sh", "-c", `case "$KVQ_ITEM" in paper*) exit 7;; esac; exit 8`)
	lines := func(args ...string) int { return strings.Count(s.ok("", append([]string{"dead"}, args...)...), "\n") }
	assert.Equal(t, 5, lines())
	assert.Equal(t, 3, lines("-why", "status 7"))
	assert.Equal(t, 2, lines("-why", "status 7", "-n", "2"))
	assert.Equal(t, 0, lines("-older", "1h"))
	assert.Equal(t, 5, lines("-younger", "1h", "-n", "0"))
	first := strings.Fields(s.ok("", "dead", "-n", "1"))[0]
	assert.Equal(t, 4, lines("-from", first))
	assert.Contains(t, s.ok("", "dead", "-json", "-n", "1"), `"added":"2`)

	assert.Equal(t, "1 items are ready again\n", s.ok("", "requeue", "-why", "status 8", "-n", "1"))
	status, out, _ := s.kvq("", "discard", "-why", "status 8")
	assert.Equal(t, 1, status)
	assert.Empty(t, out)
	assert.Equal(t, "1 items deleted\n", s.ok("default\n", "discard", "-why", "status 8"))
	assert.Equal(t, "1 items deleted\n", s.ok("", "discard", first), "whoever writes a key is not asked")
	status, _, errs := s.kvq("", "discard", first)
	assert.Equal(t, 3, status, errs)
	assert.Equal(t, "2 items are ready again\n", s.ok("", "requeue", "-all"))
	assert.Equal(t, "0 items deleted\n", s.ok("", "discard", "-all", "-yes"))
	assert.Equal(t, "3\n", s.ok("", "len"))
	assert.Regexp(t, `oldest +\d+s +since the first ready item was added`, s.ok("", "stats"))
	for _, wrong := range []string{"discard", "requeue", "discard -all " + first, "requeue -why x " + first, "purge -older -1h", "purge -n -1 -yes", "purge x", "dead -n -1"} {
		status, _, errs := s.kvq("", strings.Fields(wrong)...)
		require.Equal(t, 2, status, "%s: %s", wrong, errs)
	}
}

// A command that takes longer than the time limit of the queue is stopped, and its item has failed.
func TestATimeLimitStopsACommand(t *testing.T) {
	s := newSession(t)
	s.ok("", "put", "-quiet", "x")
	s.ok("", "configure", "-limit", "50ms", "-attempts", "1")
	status, _, errs := s.kvq("", "take", "-once", "--", "sleep", "1000")
	assert.Equal(t, 1, status)
	assert.Contains(t, errs, "the run of 1 items is stopped")
	assert.Contains(t, errs, "limit 50ms")
	assert.Contains(t, s.ok("", "dead"), "limit 50ms")
}
