package taskqueue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/taskqueue"
)

func TestAPayloadThatIsNoneOfItsKindIsADeadLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := taskqueue.Kind[letter]("t").Handle(func(context.Context, letter) error { return nil })
		i := once(t, taskqueue.Task{Payload: []byte("{")}, h["t"])
		assert.Equal(t, taskqueue.StateDead, i.State)
		assert.Contains(t, i.LastError, `the payload of a task of type "t"`)
	})
}

func TestAPayloadThatCannotBeWrittenIsInvalid(t *testing.T) {
	_, err := taskqueue.Kind[func()]("t").Task(func() {})
	var wrong *taskqueue.InvalidError
	assert.True(t, errors.As(err, &wrong), err)
}

func TestMistakesWithKindsPanic(t *testing.T) {
	nothing := func(context.Context, letter) error { return nil }
	assert.Panics(t, func() { Letter.Handle(nil) })
	assert.Panics(t, func() { Letter.Codec(nil, nil) })
	assert.PanicsWithValue(t, "taskqueue: With: two handlers for tasks of type letter", func() { Letter.Handle(nothing).With(Letter.Handle(nothing)) })
}
