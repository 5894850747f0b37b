//go:build unix

package main

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/cirunner/internal/report"
)

func TestTheFactsOfARun(t *testing.T) {
	name, err := os.Hostname()
	require.NoError(t, err)
	host := report.Fact{Name: "Host", Text: name + " (" + runtime.GOOS + "/" + runtime.GOARCH + ")"}
	for _, test := range []struct {
		variables map[string]string
		want      []report.Fact
	}{
		{nil, []report.Fact{host}},
		{
			map[string]string{"CI_PROJECT_NAME": "shop", "CI_COMMIT_BRANCH": "main", "CI_COMMIT_SHORT_SHA": "152891c4", "CI_COMMIT_TITLE": "reopen"},
			[]report.Fact{{Name: "Project", Text: "shop"}, {Name: "Branch", Text: "main"}, {Name: "Commit", Text: "152891c4 reopen"}, host},
		},
		{map[string]string{"CI_COMMIT_TAG": "v1"}, []report.Fact{{Name: "Tag", Text: "v1"}, host}},
		{
			map[string]string{"CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "new", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"},
			[]report.Fact{{Name: "Merge request", Text: "new into main"}, host},
		},
	} {
		assert.Equal(t, test.want, facts(test.variables))
	}
}
