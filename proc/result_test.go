package proc

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/service"
)

// The texts of all errors of this package that are made without a process. Those of
// a start are in TestTheErrorOfACommandThatCannotBeStartedNamesWhatIsMissing.
func TestTheTextsOfErrorsNameTheCommandAndSayThingsOnce(t *testing.T) {
	stopped := func(cause error) Result { return Result{Pid: 1, Code: 7, State: new(os.ProcessState), Cause: cause} }
	for want, err := range map[string]error{
		"make: exit status 7": &ExitError{Name: "make", Result: stopped(nil)},
		"make: exit status 7, stopped: deploy was called off":     &ExitError{Name: "make", Result: stopped(errors.New("deploy was called off"))},
		"make: exit status 7, stopped by signal: terminated":      &ExitError{Name: "make", Result: stopped(&service.SignalError{Signal: syscall.SIGTERM})},
		"make: exit status 7, stopped: stopper is gone":           &ExitError{Name: "make", Result: stopped(errors.New("stopper is gone"))},
		"make: exit status unknown, stopped: stdin is lost: torn": &ExitError{Name: "make", Result: Result{Pid: 1, Cause: &InputError{errors.New("torn")}}},
		"make: was not started":                                   &ExitError{Name: "make"},
		"make: cannot be killed":                                  &ExitError{Name: "make", Result: Result{Pid: 1, Survived: true}},
		"make: exit status 7, but some of its processes cannot be killed": &ExitError{Name: "make",
			Result: Result{Pid: 1, Code: 7, State: new(os.ProcessState), Survived: true}},
		"stdout is lost: a call of Read or Write has not returned": &OutputError{"stdout", ErrStuck},
		"stdin is lost: disk gone":                                 &InputError{errors.New("disk gone")},
	} {
		assert.EqualError(t, err, want)
	}
}
