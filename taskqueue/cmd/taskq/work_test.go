package main

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/taskqueue"
)

func TestAWorkerTellsOfTheStoreHoweverManyTypesItDoesNotKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var errs bytes.Buffer
		e := &teller{e: &env{stderr: &errs}, said: map[string]time.Time{}}
		unknown := func(kind string) { e.tell(taskqueue.Event{Kind: taskqueue.EventUnknown, Type: kind}) }
		for i := range 150 {
			unknown(fmt.Sprint("type", i))
		}
		assert.NotContains(t, errs.String(), "type149", "it keeps a bounded number of them")
		time.Sleep(time.Hour)
		errs.Reset()
		e.tell(taskqueue.Event{Kind: taskqueue.EventStore, Err: errors.New("connection refused")})
		assert.Contains(t, errs.String(), "connection refused")
		unknown("type0")
		assert.Contains(t, errs.String(), "type0", "a minute has passed")
	})
}
