package service

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/async"
)

// The texts of all errors of this package. Each says who it is about, says each thing
// once, and is understood without the source.
func TestTheTextsOfErrorsSayWhoAndSayThingsOnce(t *testing.T) {
	bad := &serviceError{"service bad: ", errors.New("root cause")}
	limit := &async.TimeoutError{Task: "services", Limit: time.Second, Waited: time.Second}
	term := &SignalError{syscall.SIGTERM}
	for want, err := range map[string]error{
		"stopped by signal: terminated":  term,
		"stopped by signal: interrupt":   &SignalError{os.Interrupt},
		"service bad: root cause":        bad,
		"service bad: drain: root cause": &serviceError{"service bad: drain: ", errors.New("root cause")},
		"service http: its server has run before: make a server and a service for each Run": &serviceError{"service http: ", errRan},
		"service: the drain was cut short: stopped by signal: interrupt; it was for: stopped by signal: terminated": &cutShort{
			why: term, by: &SignalError{os.Interrupt}},
		"service: the drain was cut short: stopped by signal: terminated": &cutShort{by: term},
		"service: the drain was cut short: async: services: context deadline exceeded (limit 1s, waited 1s); still draining: service a for 1s (Run)": &cutShort{
			why: bad, by: limit, plain: true, left: "; still draining: service a for 1s (Run)"},
		"the drain was cut short":                              &toldBefore{&cutShort{by: term}},
		"service bad: root cause\n\tservice a: two\n\tlines":   &runError{[]error{bad, &serviceError{"service a: ", errors.New("two\nlines\n")}}},
		"service bad: service.panicsInText, whose text panics": &serviceError{"service bad: ", panicsInText{}},
	} {
		assert.EqualError(t, err, want)
	}
	assert.True(t, strings.HasPrefix((&crash{"boom", []byte("goroutine 1")}).Error(), "panic: boom\n\ngoroutine 1"))
}

type panicsInText struct{}

func (panicsInText) Error() string { panic("in Error") }
