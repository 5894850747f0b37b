//go:build !unix

package proc

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/ambit-go/ambit/async"
)

// Run starts nothing here: there are no process groups on this system. Its
// error matches [errors.ErrUnsupported].
func Run(ctx context.Context, c Command, opts ...async.TaskOption) (Result, error) {
	return Result{Code: -1}, fmt.Errorf("proc: there are no process groups on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
