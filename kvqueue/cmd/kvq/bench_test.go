package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheBenchMeasuresEachQueue(t *testing.T) {
	s := &session{t, ""}
	out := s.ok("", "bench", "-items", "60", "-consumers", "3", "-limit", "1m")
	for _, queue := range []string{"race for the head", "staging, everybody", "kvqueue, a handle each", "kvqueue, one handle", "one of the first, by chance"} {
		assert.Regexp(t, queue+`.* [1-9][0-9]* +[0-9]+ % +[0-9.]+ an item`, out)
	}
	for _, wrong := range [][]string{{"bench", "-items", "0"}, {"bench", "extra"}} {
		status, _, _ := s.kvq("", wrong...)
		assert.Equal(t, 2, status)
	}
}
