//go:build unix

package main

import (
	"os"
	"runtime"

	"github.com/ambit-go/ambit/cirunner/internal/report"
)

// facts are what the report says of a run, beside its jobs: for which commit it was, and on which machine.
func facts(variables map[string]string) (all []report.Fact) {
	add := func(name, text string) {
		if text != "" {
			all = append(all, report.Fact{Name: name, Text: text})
		}
	}
	add("Project", variables["CI_PROJECT_NAME"])
	switch {
	case variables["CI_COMMIT_TAG"] != "":
		add("Tag", variables["CI_COMMIT_TAG"])
	case variables["CI_MERGE_REQUEST_SOURCE_BRANCH_NAME"] != "":
		add("Merge request", variables["CI_MERGE_REQUEST_SOURCE_BRANCH_NAME"]+" into "+variables["CI_MERGE_REQUEST_TARGET_BRANCH_NAME"])
	default:
		add("Branch", variables["CI_COMMIT_BRANCH"])
	}
	if sha := variables["CI_COMMIT_SHORT_SHA"]; sha != "" {
		add("Commit", sha+" "+variables["CI_COMMIT_TITLE"])
	}
	host, _ := os.Hostname() // a report without it is one, too
	add("Host", host+" ("+runtime.GOOS+"/"+runtime.GOARCH+")")
	return all
}
