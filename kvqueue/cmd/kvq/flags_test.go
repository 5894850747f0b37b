package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAFlagThatDoesNothingIsRefused(t *testing.T) {
	for _, command := range []string{"take", "requeue", "import"} {
		status, _, stderr := newSession(t).kvq("", command, "-json", "x")
		assert.Equal(t, 2, status)
		assert.Contains(t, stderr, "flag provided but not defined: -json")
	}
}

func TestAListInJSONIsAList(t *testing.T) {
	s := newSession(t)
	s.ok("", "put", "a")
	assert.Contains(t, s.ok("", "doctor", "-json"), `"sessions":[],"faults":[]`)
}
