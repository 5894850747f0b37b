package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/audit"
)

// Audit is the method of taskqueue.Auditor. It reads the keys themselves.
func (s *Store) Audit(ctx context.Context, queue string) ([]string, error) {
	if err := taskqueue.CheckName("queue", queue); err != nil {
		return nil, err
	}
	a := &auditing{Audit: audit.New(), s: s, ctx: ctx, queue: queue, base: s.base(queue), in: map[string][]string{}}
	err := a.read()
	if err == nil {
		err = a.tasks()
	}
	if err == nil {
		err = a.end()
	}
	return a.Faults, err
}

// An auditing is an Audit of the keys of a queue.
type auditing struct {
	*audit.Audit
	s     *Store
	ctx   context.Context
	queue string
	base  string
	in    map[string][]string // by id: the sets it is in
}

// read reads all sets and the unique keys.
func (a *auditing) read() (err error) {
	members := func(name string, f func(member string)) {
		if err != nil {
			return
		}
		var all []string
		all, err = a.s.client.ZRange(a.ctx, a.base+name, 0, -1).Result()
		for _, m := range all {
			f(m)
		}
	}
	for _, name := range append(names[:14:14], "waiting") {
		members(name, func(id string) { a.in[id] = append(a.in[id], name) })
	}
	members("limited", a.parked)
	members("wakes", func(group string) { a.Wakes[group] = true })
	members("release", func(id string) { a.Releases[id] = true })
	members("edges", func(member string) {
		parent, rest, _ := strings.Cut(member, "\x00")
		a.Edges = append(a.Edges, audit.Edge{Parent: parent, Child: rest[1:], OnFailed: onFailed[rest[0]]})
	})
	if err == nil {
		a.Holders, err = a.s.client.HGetAll(a.ctx, a.base+"u").Result()
	}
	if err == nil {
		if a.LastToken, err = a.s.client.HGet(a.ctx, a.base+"c", "token").Int64(); err == redis.Nil {
			err = nil
		}
	}
	return err
}

// sets are where a task in a state has to be.
func sets(i *taskqueue.Info) []string {
	if i.Limited {
		return []string{"limited"}
	}
	switch i.State {
	case taskqueue.StateRunning:
		return []string{"run"}
	case taskqueue.StateDone:
		return []string{"done", "forget"}
	case taskqueue.StateCancelled:
		return []string{"cancelled", "forget"}
	case taskqueue.StateDead:
		return []string{"dead"}
	case taskqueue.StateWaiting:
		return []string{"waiting"}
	}
	return []string{fmt.Sprintf("due:%d", i.Priority)}
}

// tasks compares every task with the sets it is in, and takes it off them.
func (a *auditing) tasks() error {
	ids, err := a.s.client.HKeys(a.ctx, a.base+"p").Result()
	if err != nil {
		return err
	}
	states, err := a.s.client.HKeys(a.ctx, a.base+"s").Result()
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, id := range ids {
		known[id] = true
		i, group, err := a.s.get(a.ctx, a.queue, id)
		if err != nil {
			a.Fault("task %s cannot be read: %v", id, err)
			continue
		}
		a.inSets(&i)
		a.Task(&i, group)
	}
	for _, id := range states {
		if !known[id] {
			a.Fault("task %s has a state and no envelope", id)
		}
	}
	return nil
}

// inSets looks whether a task is where it has to be, and nowhere else.
func (a *auditing) inSets(i *taskqueue.Info) {
	want := map[string]bool{}
	for _, name := range sets(i) {
		want[name] = true
	}
	for _, name := range a.in[i.ID] {
		if !want[name] && !(name == "retry" && !i.State.Ended() && i.State != taskqueue.StateRunning) {
			a.Fault("task %s is %v, and is in %s", i.ID, i.State, name)
		}
		delete(want, name)
	}
	for name := range want {
		a.Fault("task %s is %v, and is not in %s", i.ID, i.State, name)
	}
	delete(a.in, i.ID)
}

// end compares what is counted with what there is.
func (a *auditing) end() error {
	for id, where := range a.in {
		a.Fault("%s is left over in %v", id, where)
	}
	if err := a.counts("held", "leases under the limit", a.Held); err != nil {
		return err
	}
	waits := map[string]int{}
	for _, e := range a.Edges {
		waits[e.Child]++
	}
	if err := a.counts("left", "others are waited for by task", waits); err != nil {
		return err
	}
	limits, err := a.s.run(a.ctx, a.s.scripts.look, a.queue, "settings", "limits")
	if err != nil {
		return err
	}
	return a.End(text(limits))
}

// counts compares a hash of counts with what was found.
func (a *auditing) counts(name, what string, found map[string]int) error {
	counted, err := a.s.client.HGetAll(a.ctx, a.base+name).Result()
	for of, n := range counted {
		if strconv.Itoa(found[of]) != n {
			a.Fault("%s %s %q are counted, there are %d", n, what, of, found[of])
		}
	}
	for of, n := range found {
		if counted[of] == "" {
			a.Fault("%d %s %q are not counted", n, what, of)
		}
	}
	return err
}

// parked notes a task that a limit keeps.
func (a *auditing) parked(member string) {
	group, at, found := strings.Cut(member, "\x00")
	if !found || len(at) < 18 {
		a.Fault("%q is left over in limited", member)
		return
	}
	a.in[at[17:]] = append(a.in[at[17:]], "limited")
	a.Parked[group]++
}
