package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/after"
	"github.com/ambit-go/ambit/taskqueue/internal/group"
)

const (
	// sendTimeout bounds a script that carries the calls of many: none of their contexts
	// is the one to end it.
	sendTimeout = 10 * time.Second
	// scriptsAtATime is how many scripts of one queue are on their way: while the server
	// works on one the next is packed, or the last unpacked.
	scriptsAtATime = 2
	// together is how much calls that are sent as one script have at most, unless one has
	// more by itself: 250 tasks take a server about 2 ms, in which it does nothing else.
	together = taskqueue.MaxBatchBytes / 4
)

// batches sends calls of Enqueue that come at the same time as one script.
type batches struct {
	s      *Store
	queues sync.Map // name -> *group.Group[*batch]
}

// A batch is one call of Enqueue. Its caller may have left when it is sent.
type batch struct {
	tasks   []taskqueue.Task
	args    []any // for the script
	weight  int
	results []taskqueue.Result
	after   bool // some of the tasks wait for others: it goes alone; see sendAfter
	err     error
}

func (b *batches) init(s *Store) { b.s = s }

func (b *batches) of(queue string) *group.Group[*batch] {
	g, ok := b.queues.Load(queue)
	if !ok {
		g, _ = b.queues.LoadOrStore(queue, group.New(together, scriptsAtATime,
			func(one *batch) int { return one.weight },
			func(all []*batch) error { return b.send(queue, all) }))
	}
	return g.(*group.Group[*batch])
}

// enqueue sends tasks, which have been checked, together with those of others. If ctx
// ends before they are sent, they are not. If it ends after that, nobody waits for the
// answer.
func (b *batches) enqueue(ctx context.Context, queue string, tasks []taskqueue.Task) ([]taskqueue.Result, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if b.s.closed.Load() {
		return nil, taskqueue.ErrClosed
	}
	one := newBatch(tasks)
	if err := b.of(queue).Do(ctx, one); err != nil {
		if errors.Is(err, group.ErrLeft) {
			err = fmt.Errorf("%w: %w", taskqueue.ErrUnknown, context.Cause(ctx))
		}
		return nil, err
	}
	return one.results, one.err
}

// newBatch packs tasks on the goroutine of the caller: there are more of them than of
// those that send.
func newBatch(tasks []taskqueue.Task) *batch {
	one := &batch{tasks: tasks, args: make([]any, 0, 4*len(tasks))}
	for i := range tasks {
		one.args = appendTask(one.args, &tasks[i])
		// A step may have MaxBatch tasks and MaxBatchBytes: a share of that is reached when
		// either is.
		one.after = one.after || len(tasks[i].After) > 0
		one.weight += max(len(one.args[4*i+1].([]byte)), taskqueue.MaxBatchBytes/taskqueue.MaxBatch)
	}
	return one
}

// send sends calls, those of tasks that wait for nothing in one script. Its error is told to all of them.
func (b *batches) send(queue string, all []*batch) error {
	all = b.sendAfter(queue, all)
	if len(all) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), sendTimeout)
	defer cancel()
	if err := b.s.register(ctx, queue); err != nil {
		return err
	}
	args := all[0].args
	if len(all) > 1 {
		args = nil
		for _, one := range all {
			args = append(args, one.args...)
		}
	}
	got, err := b.s.run(ctx, b.s.scripts.enqueue, queue, args...)
	if err := unknown(err); err != nil {
		return err
	}
	verdicts := list(got)
	for _, one := range all {
		one.read(verdicts)
		verdicts = verdicts[len(one.tasks):]
	}
	return nil
}

// unknown is the error of a script that adds tasks. Without [taskqueue.ErrUnknown] the server has done
// nothing, or was not asked.
func unknown(err error) error {
	if unanswered := new(unansweredError); errors.As(err, &unanswered) {
		return fmt.Errorf("%w: %w", taskqueue.ErrUnknown, err)
	}
	return err
}

// read takes over what the script says of the tasks.
func (one *batch) read(verdicts []any) {
	one.results = make([]taskqueue.Result, len(one.tasks))
	for i := range one.tasks {
		one.results[i] = verdict(verdicts[i], one.tasks[i].ID)
	}
}

// verdict reads what the script says of a task: a number, or a list of that and of the
// id that holds the unique key.
func verdict(v any, id string) taskqueue.Result {
	if l := list(v); len(l) == 2 {
		return taskqueue.Result{Verdict: taskqueue.Verdict(integer(l[0])), ID: text(l[1])}
	}
	return taskqueue.Result{Verdict: taskqueue.Verdict(integer(v)), ID: id}
}

// idle waits until nothing is being sent.
func (b *batches) idle() {
	b.queues.Range(func(_, g any) bool {
		g.(*group.Group[*batch]).Idle()
		return true
	})
}

// onFailed are the letters that the scripts know; see after.lua.
var onFailed = map[byte]taskqueue.OnFailed{'s': taskqueue.OnFailedSkip, 'r': taskqueue.OnFailedRun, 'w': taskqueue.OnFailedWait}

// packAfter appends what t waits for: the letter of OnFailed, how many there are, and each with its length.
func packAfter(b []byte, t *taskqueue.Task) []byte {
	b = append(b, (string(t.OnFailed) + string(taskqueue.OnFailedSkip))[0], byte(len(t.After)))
	for _, id := range t.After {
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(id))), id...)
	}
	return b
}

// after reads what packAfter has written.
func (r *reader) after(t *taskqueue.Task) {
	t.OnFailed = onFailed[byte(r.fixed(1))]
	for range r.fixed(1) {
		t.After = append(t.After, string(r.bytes(r.fixed(2))))
	}
}

// sendAfter sends those of some calls whose tasks wait for others, each by itself: what is wrong with
// one is not told to the others. It returns the rest.
func (b *batches) sendAfter(queue string, all []*batch) (rest []*batch) {
	for _, one := range all {
		if one.after {
			one.err = b.sendOne(queue, one)
		} else {
			rest = append(rest, one)
		}
	}
	return rest
}

func (b *batches) sendOne(queue string, one *batch) error {
	ctx, cancel := context.WithTimeout(context.Background(), sendTimeout)
	defer cancel()
	if err := b.s.register(ctx, queue); err != nil {
		return err
	}
	// Programs of the version before cannot read such tasks, and are told so when they start.
	if err := b.s.client.Set(ctx, b.s.formatKey(), format, 0).Err(); err != nil {
		return err
	}
	got, err := b.s.run(ctx, b.s.scripts.enqueueAfter, queue, one.args...)
	if err := unknown(err); err != nil {
		return err
	}
	answer := list(got)
	switch text(answer[0]) {
	case "unknown":
		return after.Unknown(queue, text(answer[1]), text(answer[2]))
	case "refused":
		return after.Refused(text(answer[1]), text(answer[2]), text(answer[3]), text(answer[4]))
	}
	one.read(answer)
	return nil
}
