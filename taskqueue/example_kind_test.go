package taskqueue_test

import (
	"context"
	"encoding/xml"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
)

type letter struct{ To string }

// Letter is the type of task that both sides know.
var Letter = taskqueue.Kind[letter]("letter")

var Picture = taskqueue.Kind[string]("picture")

// Those that enqueue and those that work share one value.
func ExampleKind() {
	q, _ := taskqueue.New(memstore.New())
	ctx := context.Background()
	t, _ := Letter.Task(letter{To: "ada"})
	_, _ = q.Enqueue(ctx, t)
	_ = q.Work(ctx, Letter.Handle(func(ctx context.Context, l letter) error {
		fmt.Println("a letter to", l.To)
		return nil
	}), taskqueue.WorkUntilEmpty())
	// Output: a letter to ada
}

func ExampleKindOf_Task() {
	t, err := Letter.Task(letter{To: "ada"}, func(t *taskqueue.Task) { t.Delay, t.UniqueKey = time.Hour, "ada" })
	fmt.Println(t.Type, string(t.Payload), t.Delay, t.UniqueKey, err)
	// Output: letter {"To":"ada"} 1h0m0s ada <nil>
}

func ExampleKindOf_Handle() {
	h := Letter.Handle(func(_ context.Context, l letter) error { return nil })
	fmt.Println(len(h), h["letter"] != nil)
	// Output: 1 true
}

func ExampleHandlers_With() {
	h := Letter.Handle(func(context.Context, letter) error { return nil }).With(
		Picture.Handle(func(context.Context, string) error { return nil }))
	fmt.Println(len(h))
	// Output: 2
}

func ExampleKindOf_Codec() {
	inXML := Letter.Codec(xml.Marshal, xml.Unmarshal)
	t, err := inXML.Task(letter{To: "ada"})
	fmt.Println(string(t.Payload), err)
	// Output: <letter><To>ada</To></letter> <nil>
}

func ExampleKindOf_Name() {
	fmt.Println(Letter.Name())
	// Output: letter
}

func ExampleQueue_RetryAll() {
	q := aQueue()
	n, err := q.RetryAll(context.Background(), taskqueue.Filter{State: taskqueue.StateDead, Type: "bad", Error: "bad"})
	i, _ := q.Get(context.Background(), "dead")
	fmt.Println(n, err, i.State)
	// Output: 1 <nil> ready
}

func ExampleQueue_CancelAll() {
	q := aQueue()
	n, err := q.CancelAll(context.Background(), taskqueue.Filter{Type: "ok"})
	i, _ := q.Get(context.Background(), "later")
	fmt.Println(n, err, i.State)
	// Output: 1 <nil> cancelled
}

func ExampleQueue_DeleteAll() {
	q := aQueue()
	n, err := q.DeleteAll(context.Background(), taskqueue.Filter{})
	fmt.Println(n, err)
	// Output: 2 <nil>
}
