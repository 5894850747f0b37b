package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"

	"github.com/ambit-go/ambit/taskqueue"
)

// An importing is one run of taskq import.
type importing struct {
	queue  *taskqueue.Queue
	waits  map[string][]taskqueue.Task // by queue: what is enqueued next
	size   int                         // of waits, in tasks
	bytes  int                         // of their payloads and headers
	report importReport
}

// An importReport says what became of the tasks of a file.
type importReport struct {
	Imported int                     `json:"imported"`
	Exist    int                     `json:"exist"` // the store knows their IDs
	Held     []string                `json:"held,omitempty"`
	Left     map[taskqueue.State]int `json:"left"` // have ended, and are in the file alone
}

func importCommand(f *flag.FlagSet) func(context.Context, *env) error {
	dead := f.Bool("dead", false, "import dead letters, too: they run again")
	return func(ctx context.Context, e *env) (err error) {
		if len(e.args) != 1 {
			return usagef("import needs one file: that of the store of before")
		}
		file, err := openOldFile(e.args[0])
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.db.Close()) }()
		im := &importing{queue: e.queue, waits: map[string][]taskqueue.Task{}}
		im.report.Left = map[taskqueue.State]int{}
		if err := im.read(ctx, file, *dead); err != nil {
			return fmt.Errorf("%w (%d tasks were imported before; import the file once more, which adds none twice)", err, im.report.Imported)
		}
		return im.tell(e)
	}
}

// read imports the settings first, so that a queue that was paused is from the beginning.
func (im *importing) read(ctx context.Context, file *oldFile, dead bool) error {
	err := file.settings(func(queue string, s taskqueue.Settings) error {
		if s == (taskqueue.Settings{}) {
			return nil
		}
		return im.queue.In(queue).Configure(ctx, func(set *taskqueue.Settings) { *set = s })
	})
	if err != nil {
		return err
	}
	err = file.tasks(func(t taskqueue.Task, s taskqueue.State) error {
		if s.Ended() && (s != taskqueue.StateDead || !dead) {
			im.report.Left[s]++
			return nil
		}
		return im.add(ctx, t)
	})
	return errors.Join(err, im.flush(ctx))
}

// add enqueues a task with others.
func (im *importing) add(ctx context.Context, t taskqueue.Task) error {
	size := len(t.Payload) + taskqueue.MaxHeaders
	if im.size == taskqueue.MaxBatch || im.bytes+size > taskqueue.MaxBatchBytes {
		if err := im.flush(ctx); err != nil {
			return err
		}
	}
	im.waits[t.Queue] = append(im.waits[t.Queue], t)
	im.size, im.bytes = im.size+1, im.bytes+size
	return nil
}

func (im *importing) flush(ctx context.Context) error {
	for queue, tasks := range im.waits {
		results, err := im.queue.In(queue).EnqueueAll(ctx, tasks)
		if err != nil {
			return err
		}
		for i, r := range results {
			switch r.Verdict {
			case taskqueue.Added:
				im.report.Imported++
			case taskqueue.Exists:
				im.report.Exist++
			default:
				im.report.Held = append(im.report.Held, tasks[i].ID)
			}
		}
	}
	clear(im.waits)
	im.size, im.bytes = 0, 0
	return nil
}

func (im *importing) tell(e *env) error {
	r := im.report
	if e.json {
		return json.NewEncoder(e.stdout).Encode(r)
	}
	text := fmt.Sprintf("%d tasks imported\n", r.Imported)
	if r.Exist > 0 {
		text += fmt.Sprintf("%d were there already\n", r.Exist)
	}
	for _, id := range r.Held {
		text += fmt.Sprintf("task %s was not imported: another one holds its unique key\n", id)
	}
	for s := taskqueue.StateDone; s <= taskqueue.StateCancelled; s++ {
		if n := r.Left[s]; n > 0 {
			text += fmt.Sprintf("%d %s were left in %s\n", n, s, e.args[0])
		}
	}
	_, err := fmt.Fprint(e.stdout, text)
	return err
}
