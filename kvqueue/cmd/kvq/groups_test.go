package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestItemsOfAGroupAreTakenOneAfterAnother(t *testing.T) {
	s := newSession(t)
	assert.Contains(t, s.ok("", "put", "-group", "a/b", "one", "two", "three"), "added 3, from ")
	s.ok("", "put", "-quiet", "four")
	s.ok("x\ny\n", "put", "-quiet", "-group", "c")
	assert.Contains(t, s.ok("", "peek"), `"two" group="a/b"`)
	assert.Contains(t, s.ok("", "peek", "-json"), `"group":"a/b"`)
	assert.Equal(t, "6\n", s.ok("", "len"))
	stats := strings.Join(strings.Fields(s.ok("", "stats")), " ")
	assert.Contains(t, stats, "5 of the ready ones are of a group")
	assert.Contains(t, stats, "groups 2 have items")
	out := s.ok("", "take", "-until-empty", "-workers", "4", "--", "sh", "-c", `echo "$KVQ_GROUP $KVQ_ITEM"`)
	var ofGroup []string
	for _, line := range strings.Split(out, "\n") {
		if item, is := strings.CutPrefix(line, "a/b "); is {
			ofGroup = append(ofGroup, item)
		}
	}
	assert.Equal(t, []string{"one", "two", "three"}, ofGroup)
	assert.Contains(t, out, " four\n")
	assert.Contains(t, strings.Join(strings.Fields(s.ok("", "stats")), " "), " ready 0 ")
	status, _, errs := s.kvq("", "put", "-group", strings.Repeat("x", 200), "y")
	assert.Equal(t, 2, status)
	assert.Contains(t, errs, "128")
}

func TestADeadLetterSaysItsGroup(t *testing.T) {
	s := newSession(t)
	s.ok("", "put", "-quiet", "-group", "a/b", "one")
	s.ok("", "configure", "-attempts", "1")
	status, _, _ := s.kvq("", "take", "-once", "--", "false")
	assert.Equal(t, 1, status)
	assert.Contains(t, s.ok("", "dead"), `status 1" group="a/b"`)
}
