//go:build unix

package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// RunLabel is the label of everything that a run has in the engine.
func RunLabel(dir string) string { return "cirunner.run=" + dir }

// Sweep kills and removes the containers that have a label, NAME=value, and then the
// networks. It returns how many containers there were.
func (e *Engine) Sweep(ctx context.Context, label string) (containers int, err error) {
	ids, err := e.list(ctx, label, "ps", "--all", "--quiet")
	if err != nil {
		return 0, err
	}
	var errs []error
	if len(ids) > 0 {
		_, _ = e.ask(ctx, append([]string{"kill", "--signal", "KILL"}, ids...)...) // an error tells that one has ended
		_, err := e.ask(ctx, append([]string{"rm", "--force", "--volumes"}, ids...)...)
		errs = append(errs, err)
	}
	networks, err := e.list(ctx, label, "network", "ls", "--quiet")
	errs = append(errs, err)
	if len(networks) > 0 {
		_, err := e.ask(ctx, append([]string{"network", "rm"}, networks...)...)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return len(ids), fmt.Errorf("cannot remove what has the label %s: %w", label, err)
	}
	return len(ids), nil
}

// list returns the ids that a command prints of what has a label.
func (e *Engine) list(ctx context.Context, label string, command ...string) ([]string, error) {
	text, err := e.ask(ctx, append(command, "--filter", "label="+label)...)
	return strings.Fields(text), err
}
