package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ambit-go/ambit/examples/internal/cli"
)

// methods are those that a plan may hold. They are made again after a failure, so
// they had better be safe to repeat.
var methods = []string{http.MethodDelete, http.MethodPost, http.MethodPut}

// readPlan reads the plan in a file. Its errors are ready to be shown.
func readPlan(name string, budget time.Duration) ([]phase, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, cli.Usagef("cannot read the plan: %v", err)
	}
	defer file.Close()
	plan, err := parsePlan(file, budget)
	if err != nil {
		return nil, cli.Usagef("%s:%v", name, err)
	}
	return plan, nil
}

// parsePlan reads a plan. budget is that of phases that have none. Its errors
// begin with the line.
func parsePlan(r io.Reader, budget time.Duration) (plan []phase, err error) {
	lines := bufio.NewScanner(r)
	n := 0
	for lines.Scan() {
		n++
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
			continue
		case words[0] == "phase":
			var p phase
			p, err = parsePhase(words[1:], budget)
			plan = append(plan, p)
		case len(plan) == 0:
			err = errors.New(`a plan begins with a phase, like "phase containers 20s"`)
		default:
			p := &plan[len(plan)-1]
			var req request
			req, err = parseRequest(words)
			p.requests = append(p.requests, req)
		}
		if err != nil {
			return nil, fmt.Errorf("%d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%d: %w", n+1, err)
	}
	if len(plan) == 0 {
		return nil, fmt.Errorf("%d: the plan is empty", n+1)
	}
	return plan, nil
}

// parsePhase reads what follows the word phase.
func parsePhase(words []string, budget time.Duration) (p phase, err error) {
	switch len(words) {
	case 1:
		return phase{name: words[0], budget: budget}, nil
	case 2:
		p = phase{name: words[0]}
		if p.budget, err = time.ParseDuration(words[1]); err != nil || p.budget <= 0 {
			return p, fmt.Errorf("the time of a phase is one like 20s or 2m, not %q", words[1])
		}
		return p, nil
	}
	return p, errors.New(`a phase has a name and perhaps a time, like "phase containers 20s"`)
}

func parseRequest(words []string) (request, error) {
	if len(words) != 2 || !slices.Contains(methods, words[0]) {
		return request{}, fmt.Errorf("a request is %s and a URL", strings.Join(methods, ", "))
	}
	u, err := url.Parse(words[1])
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return request{}, fmt.Errorf("%q is not a URL like http://127.0.0.1:8080/volumes/data", words[1])
	}
	return request{words[0], words[1]}, nil
}
