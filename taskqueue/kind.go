package taskqueue

import (
	"context"
	"encoding/json"
	"fmt"
)

// A KindOf is a type of task and the Go type of its payloads: one value for those that enqueue and
// for those that work. Make it with [Kind].
type KindOf[P any] struct {
	name      string
	marshal   func(any) ([]byte, error)
	unmarshal func([]byte, any) error
}

// Kind returns the tasks of a type whose payloads are values of P, written as JSON:
//
//	var Mail = taskqueue.Kind[mail]("mail")
//
//	task, err := Mail.Task(mail{To: "ada"}) // to be enqueued
//	err = q.Work(ctx, Mail.Handle(send))    // send is a func(context.Context, mail) error
//
// The name is the Type of the tasks.
func Kind[P any](name string) KindOf[P] {
	return KindOf[P]{name: name, marshal: json.Marshal, unmarshal: json.Unmarshal}
}

// Codec returns the kind with another form of payloads than JSON. unmarshal is given a pointer to
// a P. Both are called by many goroutines at the same time. Nil panics.
func (k KindOf[P]) Codec(marshal func(any) ([]byte, error), unmarshal func(data []byte, to any) error) KindOf[P] {
	if marshal == nil || unmarshal == nil {
		panic("taskqueue: Codec with a nil function: pass both")
	}
	k.marshal, k.unmarshal = marshal, unmarshal
	return k
}

// Name returns the Type of the tasks.
func (k KindOf[P]) Name() string { return k.name }

// Task returns a task with this payload. set says the rest about it, such as its Delay,
// one after the other. A payload that cannot be written is an [*InvalidError].
func (k KindOf[P]) Task(payload P, set ...func(*Task)) (Task, error) {
	b, err := k.marshal(payload)
	if err != nil {
		return Task{}, invalid("Payload", "one of type %s cannot be written: %v", k.name, err)
	}
	t := Task{Type: k.name, Payload: b}
	for _, f := range set {
		f(&t)
	}
	return t, nil
}

// Handle returns f as the handler of tasks of this kind, for [Queue.Work]; see [Handlers.With]. A
// payload that is not one of a P makes a dead letter: another run would not change that.
// [ClaimOf] gives f the rest of the task. A nil f panics.
func (k KindOf[P]) Handle(f func(ctx context.Context, payload P) error) Handlers {
	if f == nil {
		panic("taskqueue: Handle(nil): pass the function that runs the task")
	}
	return Handlers{k.name: k.handler(f)}
}

func (k KindOf[P]) handler(f func(context.Context, P) error) Handler {
	return func(ctx context.Context, c *Claim) error {
		var p P
		if err := k.unmarshal(c.Payload, &p); err != nil {
			return Dead(fmt.Errorf("taskqueue: the payload of a task of type %q is not what its handler takes: %w", c.Type, err))
		}
		return f(ctx, p)
	}
}

// With returns the handlers together with others. A type that two of them have panics.
func (h Handlers) With(others ...Handlers) Handlers {
	all := h.Use() // a copy
	for _, other := range others {
		for name, f := range other {
			if _, taken := all[name]; taken {
				panic("taskqueue: With: two handlers for tasks of type " + name)
			}
			all[name] = f
		}
	}
	return all
}
