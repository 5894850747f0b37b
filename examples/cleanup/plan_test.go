package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPlanIsRead(t *testing.T) {
	plan, err := parsePlan(strings.NewReader(`
# a comment
phase containers 20s
  DELETE http://127.0.0.1:8080/containers/web

POST	https://example.test/containers/db/stop?t=1
phase empty
phase volumes 1m30s
PUT http://[::1]:80/x
`), time.Minute)
	require.NoError(t, err)
	assert.Equal(t, []phase{
		{"containers", 20 * time.Second, []request{
			{"DELETE", "http://127.0.0.1:8080/containers/web"},
			{"POST", "https://example.test/containers/db/stop?t=1"},
		}},
		{"empty", time.Minute, nil},
		{"volumes", 90 * time.Second, []request{{"PUT", "http://[::1]:80/x"}}},
	}, plan)
}

func TestPlanThatIsWrongIsToldByLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "1: the plan is empty",
		"# nothing\n\n":                          "3: the plan is empty",
		"DELETE http://a/":                       "1: a plan begins with a phase",
		"phase":                                  "1: a phase has a name",
		"phase a b c":                            "1: a phase has a name",
		"\nphase a soon":                         `2: the time of a phase is one like 20s or 2m, not "soon"`,
		"phase a 0s":                             "1: the time of a phase",
		"phase a -1s":                            "1: the time of a phase",
		"phase a\nGET http://a/":                 "2: a request is DELETE, POST, PUT and a URL",
		"phase a\nDELETE":                        "2: a request is",
		"phase a\nDELETE http://a/ http://b/":    "2: a request is",
		"phase a\nDELETE /volumes/x":             `2: "/volumes/x" is not a URL`,
		"phase a\nDELETE ftp://a/x":              "2: \"ftp://a/x\" is not a URL",
		"phase a\n" + strings.Repeat("x", 1<<17): "2: bufio.Scanner: token too long",
	} {
		_, err := parsePlan(strings.NewReader(text), time.Minute)
		assert.ErrorContains(t, err, want)
	}
}
