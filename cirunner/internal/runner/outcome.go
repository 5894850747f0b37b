//go:build unix

package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
	"github.com/ambit-go/ambit/proc"
	program "github.com/ambit-go/ambit/service"
)

// outcome says what an error of an attempt means. An error may hold a cause and
// what came of it: a script that was stopped for a reason and ended with some
// exit status. Then the cause decides. ctx is the hard one.
func (a *attempt) outcome(ctx context.Context, err error) plan.Outcome {
	var (
		stop   *Stop
		limit  *timeLimit
		broken *serviceError
		output *proc.OutputError
		found  *stuck
		exit   *proc.ExitError
	)
	switch {
	case err == nil:
		return plan.Outcome{}
	case errors.As(err, &stop):
		return plan.Outcome{Cause: plan.Stopped, Text: stop.Error()}
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return plan.Outcome{Cause: plan.Stopped, Text: "aborted: " + aborted(context.Cause(ctx))}
	case errors.As(err, &limit):
		return plan.Outcome{Cause: pipeline.TimeoutFailure, ExitCode: -1, Text: limit.Error() + ending(err)}
	case errors.As(err, &found), errors.As(err, new(*async.WatchdogError)):
		return plan.Outcome{Cause: pipeline.StuckFailure, ExitCode: -1, Text: text(found, err) + ending(err)}
	case errors.As(err, &broken):
		return plan.Outcome{Cause: pipeline.SystemFailure, ExitCode: -1, Text: broken.Error()}
	case errors.As(err, new(*childError)):
		return plan.Outcome{Cause: pipeline.ChildFailure, ExitCode: -1, Text: err.Error()}
	case errors.As(err, new(*engineError)):
		return plan.Outcome{Cause: pipeline.SystemFailure, ExitCode: -1, Text: err.Error()}
	case errors.As(err, &output):
		return plan.Outcome{Cause: pipeline.SystemFailure, ExitCode: -1, Text: "cannot write the log: " + output.Err.Error()}
	case errors.As(err, &exit) && exit.Result.Cause == nil && exit.Result.State != nil:
		return failed(&exit.Result)
	}
	return plan.Outcome{Cause: pipeline.SystemFailure, ExitCode: -1, Text: err.Error()}
}

// aborted says why the run was: of several signals the first, as the exit status does.
func aborted(cause error) string {
	if sig := new(program.SignalError); errors.As(cause, &sig) {
		return sig.Error()
	}
	return cause.Error()
}

// failed is the outcome of a script that ended by itself.
func failed(r *proc.Result) plan.Outcome {
	if r.Signal != 0 {
		return plan.Outcome{Cause: pipeline.ScriptFailure, ExitCode: -1, Text: "ended by " + proc.SignalName(r.Signal)}
	}
	return plan.Outcome{Cause: pipeline.ScriptFailure, ExitCode: r.Code, Text: fmt.Sprintf("exit status %d", r.Code)}
}

// ending tells how a script ended that was stopped.
func ending(err error) string {
	var exit *proc.ExitError
	switch {
	case !errors.As(err, &exit):
		return ""
	case exit.Result.Killed:
		return ", and ignored TERM: killed"
	case exit.Result.Signal != 0:
		return ", ended by " + proc.SignalName(exit.Result.Signal)
	}
	return fmt.Sprintf(", exit status %d", exit.Result.Code)
}

func text(found *stuck, err error) string {
	if found != nil {
		return found.Error()
	}
	return err.Error()
}
