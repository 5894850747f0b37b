package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheDemoEndsWithATrueReport(t *testing.T) {
	s := &session{t, ""}
	out := s.ok("", "demo")
	assert.Contains(t, out, "kill -9")
	assert.Regexp(t, `items added +600`, out)
	assert.Regexp(t, `acknowledged +600`, out)
	assert.Regexp(t, `tried twice +[1-9]`, out) // up to three, and more if another consumer stood still for longer than its session lives
	assert.Regexp(t, `faults +0 `, out)
}

func TestTheReportSeesFaults(t *testing.T) {
	const twice = "adding z\nadded z\nrun z 1 90\nrun z 2 91\nacked z\n" // somebody was killed
	for name, c := range map[string]struct {
		journal string
		fault   string
	}{
		"in order":               {"adding a\nadded a\nadding b\nadded b\nrun a 1 4\nrun b 1 5\nacked b\nacked a\n", ""},
		"in one transaction":     {"adding a\nadded a\nadding b\nadded b\nrun b 1 4\nrun a 1 4\nacked b\nacked a\n", ""},
		"at the same time":       {"adding a\nadding b\nadded a\nadded b\nrun a 1 5\nrun b 1 4\nacked b\nacked a\n", ""},
		"out of order":           {"adding a\nadded a\nadding b\nadded b\nrun a 1 5\nrun b 1 4\nacked b\nacked a\n", "b was claimed before a"},
		"lost":                   {"adding a\nadded a\nrun a 1 4\n", "a was lost"},
		"acknowledged twice":     {"adding a\nadded a\nrun a 1 4\nacked a\nacked a\n", "a was acknowledged twice"},
		"run after its end":      {"adding a\nadded a\nrun a 1 4\nacked a\nrun a 2 5\n", "a was run after"},
		"the killed had nothing": {"", "nothing was tried twice"},
	} {
		t.Run(name, func(t *testing.T) {
			journal := c.journal
			if journal != "" {
				journal += twice
			}
			r := examine([]byte(journal))
			if c.fault == "" {
				assert.Empty(t, r.faults)
				return
			}
			if assert.Len(t, r.faults, 1) {
				assert.Contains(t, r.faults[0], c.fault)
			}
		})
	}
}
