package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
)

// report prints a line for each outcome, in their order.
func report(out *cli.Out, outcomes []outcome) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tADDRESS\tOUTCOME\tAFTER\tATTEMPTS\tWHY")
	for _, o := range outcomes {
		fmt.Fprintf(table, "%s\t%s\t%s\t%v\t%d\t%s\n",
			o.name, o.address, o.word(), o.took.Round(time.Millisecond), o.attempts, o.why())
	}
	_ = table.Flush() // out keeps the error
}

// word says in one word what became of o. Whose limit has passed is no question:
// only targets have one.
func (o *outcome) word() string {
	switch {
	case o.err == nil:
		return "up"
	case errors.Is(o.err, async.ErrDecided):
		return "unneeded"
	case errors.As(o.err, new(*async.TimeoutError)):
		return "down"
	default:
		return "stopped"
	}
}

// why says what is known of a target that is not up.
func (o *outcome) why() string {
	var sig *cli.SignalError
	text := ""
	switch {
	case o.err == nil:
		return ""
	case errors.Is(o.err, async.ErrDecided):
		text = "another one is up"
	case errors.As(o.err, &sig):
		text = sig.Error()
	case errors.As(o.err, new(*async.TimeoutError)):
		text = fmt.Sprintf("limit %v", o.limit)
	case errors.Is(o.err, context.Canceled):
		text = "cancelled"
	default:
		text = o.err.Error()
	}
	if o.accepted > 0 {
		text += fmt.Sprintf("; accepted %d of %d connections, never enough in a row", o.accepted, o.attempts)
	}
	if o.last != nil {
		text += "; last: " + reason(o.last).Error()
	} else if o.accepted == 0 {
		text += "; no answer"
	}
	return text
}

// verdict is what the outcomes come to.
func verdict(outcomes []outcome, any bool) error {
	up := 0
	for _, o := range outcomes {
		if o.err == nil {
			up++
		}
	}
	switch {
	case up == len(outcomes), any && up > 0:
		return nil
	case any:
		return &cli.ExitError{Code: cli.StatusDeadline, Err: fmt.Errorf("none of %d is up: %w", len(outcomes), errNotUp)}
	default:
		return &cli.ExitError{Code: cli.StatusDeadline, Err: fmt.Errorf("%d of %d: %w", len(outcomes)-up, len(outcomes), errNotUp)}
	}
}
