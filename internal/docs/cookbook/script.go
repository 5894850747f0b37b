package cookbook

import (
	"context"
	"io"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/proc"
)

// RunScript runs a script for at most limit and writes its output to log. When
// it returns, no process of the script is left and all output is written.
func RunScript(ctx context.Context, script string, log io.Writer, limit, grace time.Duration) (proc.Result, error) {
	return proc.Run(ctx, proc.Command{
		Args:   []string{"bash", "-c", script},
		Name:   "script",
		Stdout: log,
		Stderr: log,
		Grace:  grace,
	}, async.Timeout(limit))
}
