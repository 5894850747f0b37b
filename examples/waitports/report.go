package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/ambit-go/ambit/async"
)

// report has a line for each outcome, in their order.
func report(outcomes []outcome) string {
	rows := [][]string{{"NAME", "ADDRESS", "OUTCOME", "AFTER", "ATTEMPTS", "WHY"}}
	for _, o := range outcomes {
		what, why := o.explain()
		rows = append(rows, []string{o.name, o.address, what, o.took.Round(time.Millisecond).String(), fmt.Sprint(o.attempts), why})
	}
	lines := make([]string, len(rows))
	for column := range rows[0] {
		widest := 0 // in cells of a terminal: some characters take two
		for _, row := range rows {
			widest = max(widest, runewidth.StringWidth(row[column]))
		}
		for i, row := range rows {
			lines[i] += runewidth.FillRight(row[column], widest+2)
		}
	}
	return regexp.MustCompile(` *(\n|$)`).ReplaceAllString(strings.Join(lines, "\n"), "\n")
}

// explain says in one word what became of o, and what is known of it if it is not up.
func (o *outcome) explain() (what, why string) {
	poll := new(async.PollError[string]) // it knows what the probes have seen
	errors.As(o.err, &poll)
	switch {
	case o.err == nil:
		return "up", ""
	case errors.Is(o.err, async.ErrDecided):
		what, why = "unneeded", "another one is up"
	case errors.As(o.err, new(*async.TimeoutError)):
		what, why = "down", fmt.Sprintf("limit %v", o.limit) // nothing else has a limit
	case errors.Is(o.err, context.Canceled):
		what, why = "stopped", "not asked any longer"
	default:
		return "failed", poll.Err.Error()
	}
	if poll.Value != "" {
		why += "; last phase: " + poll.Value
	}
	if poll.Err != nil {
		why += "; last error: " + poll.Err.Error()
	}
	return what, why
}

// verdict is what the outcomes come to.
func verdict(outcomes []outcome, any bool) error {
	up, status := 0, 124
	for _, o := range outcomes {
		if what, _ := o.explain(); what == "up" {
			up++
		} else if what == "failed" {
			status = 1
		}
	}
	if up < len(outcomes) && !(any && up > 0) {
		return &failure{fmt.Errorf("%d of %d up", up, len(outcomes)), status}
	}
	return nil
}
