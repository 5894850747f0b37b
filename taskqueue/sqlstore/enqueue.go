package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/group"
)

const (
	// sendTimeout bounds a transaction that has the calls of many: none of their contexts is
	// the one to end it.
	sendTimeout = 10 * time.Second
	// slots is how many rows a process counts its enqueues in, so that those which go on at the
	// same time seldom wait for each other.
	slots = 4
)

// enqueues has calls of Enqueue that come at the same time carried out by one transaction.
type enqueues struct {
	s      *Store
	queues sync.Map      // name -> *group.Group[*enqueueCall]
	known  sync.Map      // name -> struct{}: the queue is in the database
	alone  chan struct{} // has one element while a call that waits for a lock is tried
}

// An enqueueCall is one call of Enqueue. Its caller may have left when it is carried out.
type enqueueCall struct {
	tasks   []taskqueue.Task
	results []taskqueue.Result
	err     error
	waits   bool // for a transaction that goes on, of a user maybe: it was not carried out
}

func (e *enqueues) init(s *Store) { e.s, e.alone = s, make(chan struct{}, 1) }

func (e *enqueues) of(queue string) *group.Group[*enqueueCall] {
	g, ok := e.queues.Load(queue)
	if !ok {
		atATime := 1 // a file has one writer
		if e.s.postgres {
			atATime = 2
		}
		weigh := func(c *enqueueCall) (n int) {
			for i := range c.tasks { // a transaction has MaxBatch tasks and MaxBatchBytes
				n += max(len(c.tasks[i].Payload), (1+len(c.tasks[i].After))*taskqueue.MaxBatchBytes/taskqueue.MaxBatch)
			}
			return n
		}
		g, _ = e.queues.LoadOrStore(queue, group.New(taskqueue.MaxBatchBytes, atATime, weigh, func(all []*enqueueCall) error {
			e.carryOut(queue, all)
			return nil
		}))
	}
	return g.(*group.Group[*enqueueCall])
}

// idle waits until nothing is being carried out.
func (e *enqueues) idle() {
	e.queues.Range(func(_, g any) bool {
		g.(*group.Group[*enqueueCall]).Idle()
		return true
	})
	e.alone <- struct{}{}
	<-e.alone
}

// Enqueue is a method of taskqueue.Store. Calls that come at the same time are carried out
// together. If ctx ends before they are, the tasks are not added; if it ends after that nobody
// waits for the answer, and the error matches [taskqueue.ErrUnknown].
func (s *Store) Enqueue(ctx context.Context, queue string, tasks []taskqueue.Task) ([]taskqueue.Result, error) {
	if err := errors.Join(taskqueue.CheckName("queue", queue), taskqueue.CheckTasks(tasks)); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	c := &enqueueCall{tasks: tasks}
	if err := s.enqueues.of(queue).Do(ctx, c); err != nil {
		if errors.Is(err, group.ErrLeft) {
			err = fmt.Errorf("%w: %w", taskqueue.ErrUnknown, context.Cause(ctx))
		}
		return nil, err
	}
	if c.waits {
		s.enqueues.carryOutAlone(ctx, queue, c)
	}
	return c.results, c.err
}

// carryOut adds the tasks of calls. After an error of the statement each call goes alone: the
// others are not to suffer.
func (e *enqueues) carryOut(queue string, all []*enqueueCall) {
	ctx, cancel := context.WithTimeout(context.Background(), sendTimeout)
	defer cancel()
	err := e.once(ctx, queue, all)
	if isLocked(err) {
		e.part(queue, all)
		return
	}
	var unknown unknownError
	if err != nil && len(all) > 1 && !errors.As(err, &unknown) && ctx.Err() == nil && !errors.Is(err, taskqueue.ErrClosed) {
		for _, c := range all {
			e.carryOut(queue, []*enqueueCall{c})
		}
		return
	}
	for _, c := range all {
		c.answer(err)
	}
}

// answer notes the error of the transaction that has carried a call out.
func (c *enqueueCall) answer(err error) {
	var unknown unknownError
	if errors.As(err, &unknown) {
		err = fmt.Errorf("%w: %w", taskqueue.ErrUnknown, err)
	}
	if c.err = err; err != nil {
		c.results = nil
	}
}

// part carries calls out that have met a lock of a transaction which goes on. It is that of a unique
// key, as a rule: the calls without keys go together, and each with a key waits for itself.
func (e *enqueues) part(queue string, all []*enqueueCall) {
	var keyless []*enqueueCall
	for _, c := range all {
		if c.waits = len(all) == 1 || c.keyed(); !c.waits {
			keyless = append(keyless, c)
		}
	}
	switch {
	case len(keyless) == len(all): // it is that of an id
		for _, c := range all {
			e.carryOut(queue, []*enqueueCall{c})
		}
	case len(keyless) > 0:
		e.carryOut(queue, keyless)
	}
}

func (c *enqueueCall) keyed() bool {
	return slices.ContainsFunc(c.tasks, func(t taskqueue.Task) bool { return t.UniqueKey != "" || len(t.After) > 0 })
}

// carryOutAlone tries a call that waits until it is carried out, or its ctx ends. One such call of a
// process is tried at a time: all others have the connections of the pool.
func (e *enqueues) carryOutAlone(ctx context.Context, queue string, c *enqueueCall) {
	for {
		select {
		case e.alone <- struct{}{}:
		case <-ctx.Done():
			c.answer(context.Cause(ctx))
			return
		}
		err := e.once(ctx, queue, []*enqueueCall{c})
		<-e.alone
		if !isLocked(err) {
			c.answer(err)
			return
		}
		sleep(ctx, 50*time.Millisecond+rand.N(50*time.Millisecond))
	}
}

func (e *enqueues) once(ctx context.Context, queue string, all []*enqueueCall) error {
	var tasks []*taskqueue.Task
	for _, c := range all {
		for i := range c.tasks {
			tasks = append(tasks, &c.tasks[i])
		}
	}
	var results []taskqueue.Result
	var st *step
	err := e.s.db.transact(ctx, writes, func(t tx) (err error) {
		st = newStep(t, queue)
		a := e.s.adding(st, tasks)
		a.brief = true
		if err := t.run(a.look()...); err != nil {
			return err
		}
		if results, err = a.add(); err != nil {
			return err
		}
		return t.end(append(a.tell(), st.note(fmt.Sprintf("p:%s/enqueue/%d", e.s.client, rand.IntN(slots)), false))...)
	})
	if err != nil {
		return err
	}
	e.known.Store(queue, struct{}{})
	e.s.written(st)
	for _, c := range all {
		c.results, results = results[:len(c.tasks):len(c.tasks)], results[len(c.tasks):]
	}
	return nil
}

// errAgain says that a transaction is to be repeated: what it has seen is not so any more.
var errAgain = errors.New("taskqueue: something has changed meanwhile")

// tell is what tells other processes that something of a queue is due, or may start.
func (s *Store) tell(st *step) []query { return s.tellAs(st, false) }

// tellAs is tell; foreign: this process is to hear of it, too.
func (s *Store) tellAs(st *step, foreign bool) []query {
	if s.postgres {
		from := s.client
		if foreign {
			from = "-"
		}
		return []query{{text: notifyText, args: []any{s.channel(), from + " " + st.queue, st.queue, st.now.steady}}}
	}
	return []query{statement("UPDATE tq_queue SET wakes = wakes + 1 WHERE queue = $1", st.queue)}
}
