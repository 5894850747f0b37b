//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A job is a job of the plan.
type job struct {
	name      string
	needs     []string
	artifacts []string      // patterns of files that later jobs get
	retry     int           // how often it may be tried again
	timeout   time.Duration // of the script; 0 for none
	silent    time.Duration // how long the script may print nothing; 0 for ever
	script    string
	after     string // runs after the script, however that has ended
}

// parse reads a plan. It is checked as a whole: what it needs is there, and no jobs need each other.
func parse(r io.Reader) ([]*job, error) {
	var jobs []*job
	var script *string // that which the lines with a tab belong to
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case word == "" || word[0] == '#' && line[0] != '\t':
			continue
		case line[0] == '\t' && script != nil:
			*script += line[1:] + "\n"
			continue
		case word == "job" && rest != "":
			jobs = append(jobs, &job{name: rest})
			script = &jobs[len(jobs)-1].script
			continue
		case len(jobs) == 0:
			return nil, fmt.Errorf("line %d: a plan begins with a job", n)
		}
		j := jobs[len(jobs)-1]
		if word == "after" {
			script = &j.after
		} else if err := j.set(word, rest); err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", n, word, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return jobs, check(jobs)
}

// set sets what a line of a job says.
func (j *job) set(word, value string) (err error) {
	switch word {
	case "needs":
		j.needs = strings.Fields(value)
	case "artifacts":
		j.artifacts = strings.Fields(value)
		for _, pattern := range j.artifacts {
			if !filepath.IsLocal(pattern) {
				err = fmt.Errorf("%s is not in the directory of the job", pattern)
			}
		}
	case "retry":
		j.retry, err = strconv.Atoi(value)
	case "timeout":
		j.timeout, err = time.ParseDuration(value)
	case "silent":
		j.silent, err = time.ParseDuration(value)
	default:
		err = fmt.Errorf("no such setting")
	}
	return err
}

// check looks at what jobs need. A job may need those that stand before it, so there are no circles.
func check(jobs []*job) error {
	known := map[string]bool{}
	for _, j := range jobs {
		switch {
		case known[j.name] || strings.ContainsAny(j.name, "/ ") || j.name == "." || j.name == "..":
			return fmt.Errorf("job %s: the name is there already, is . or .., or has a space or a slash", j.name)
		case j.script == "":
			return fmt.Errorf("job %s: it has no script", j.name)
		}
		for _, need := range j.needs {
			if !known[need] {
				return fmt.Errorf("job %s: needs %s, which does not stand before it", j.name, need)
			}
		}
		known[j.name] = true
	}
	if len(jobs) == 0 {
		return fmt.Errorf("the plan has no job")
	}
	return nil
}
