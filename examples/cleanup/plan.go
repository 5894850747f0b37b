//go:build unix

package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"
)

// readPlan reads the plan in a file. budget is that of phases that have none.
func readPlan(name string, budget time.Duration) (plan []phase, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the plan: %w", err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		words := strings.Fields(line)
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
			if u, bad := url.Parse(words[0]); bad != nil || len(words) != 1 || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
				err = fmt.Errorf("%q is not a URL like http://127.0.0.1:8080/volumes/data", line)
			}
			p := &plan[len(plan)-1]
			p.urls = append(p.urls, words[0])
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
		}
	}
	return plan, nil
}

// parsePhase reads what follows the word phase.
func parsePhase(words []string, budget time.Duration) (p phase, err error) {
	if len(words) != 1 && len(words) != 2 {
		return p, errors.New(`a phase has a name and perhaps a time, like "phase containers 20s"`)
	}
	p = phase{name: words[0], budget: budget}
	if len(words) == 2 {
		if p.budget, err = time.ParseDuration(words[1]); err != nil || p.budget <= 0 {
			return p, fmt.Errorf("the time of a phase is one like 20s or 2m, not %q", words[1])
		}
	}
	return p, nil
}
