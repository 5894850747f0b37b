package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/limit"
)

// Audit is the method of taskqueue.Auditor. It reads the keys themselves.
func (s *Store) Audit(ctx context.Context, queue string) ([]string, error) {
	if err := taskqueue.CheckName("queue", queue); err != nil {
		return nil, err
	}
	a := &audit{s: s, ctx: ctx, queue: queue, base: s.base(queue), in: map[string][]string{}, holders: map[string]string{}, held: map[string]int64{}}
	err := a.read()
	if err == nil {
		err = a.tasks()
	}
	a.leftOver()
	return a.faults, err
}

type audit struct {
	s       *Store
	ctx     context.Context
	queue   string
	base    string
	in      map[string][]string // by id: the sets it is in
	holders map[string]string   // by unique key
	token   int64
	held    map[string]int64 // leases of each group of a limit
	groups  []string         // of tasks that limits keep, with the version
	faults  []string
	states  map[string]taskqueue.State
}

func (a *audit) fault(format string, args ...any) {
	a.faults = append(a.faults, fmt.Sprintf(format, args...))
}

// read reads all sets and the unique keys.
func (a *audit) read() error {
	for _, name := range append(names[:14:14], "waiting") {
		ids, err := a.s.client.ZRange(a.ctx, a.base+name, 0, -1).Result()
		if err != nil {
			return err
		}
		for _, id := range ids {
			a.in[id] = append(a.in[id], name)
		}
	}
	if err := a.parked(); err != nil {
		return err
	}
	holders, err := a.s.client.HGetAll(a.ctx, a.base+"u").Result()
	if err != nil {
		return err
	}
	a.holders = holders
	a.token, err = a.s.client.HGet(a.ctx, a.base+"c", "token").Int64()
	if err == redis.Nil {
		err = nil
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
func (a *audit) tasks() error {
	ids, err := a.s.client.HKeys(a.ctx, a.base+"p").Result()
	if err != nil {
		return err
	}
	states, err := a.s.client.HKeys(a.ctx, a.base+"s").Result()
	if err != nil {
		return err
	}
	known := map[string]bool{}
	a.states = map[string]taskqueue.State{}
	for _, id := range ids {
		known[id] = true
		i, group, err := a.s.get(a.ctx, a.queue, id)
		if err != nil {
			a.fault("task %s cannot be read: %v", id, err)
			continue
		}
		a.task(&i)
		if i.State == taskqueue.StateRunning && group != "" {
			a.held[group]++
		}
	}
	for _, id := range states {
		if !known[id] {
			a.fault("task %s has a state and no envelope", id)
		}
	}
	return errors.Join(a.limits(), a.children())
}

func (a *audit) task(i *taskqueue.Info) {
	a.states[i.ID] = i.State
	want := map[string]bool{}
	for _, name := range sets(i) {
		want[name] = true
	}
	for _, name := range a.in[i.ID] {
		if !want[name] && !(name == "retry" && !i.State.Ended() && i.State != taskqueue.StateRunning) {
			a.fault("task %s is %v, and is in %s", i.ID, i.State, name)
		}
		delete(want, name)
	}
	for name := range want {
		a.fault("task %s is %v, and is not in %s", i.ID, i.State, name)
	}
	delete(a.in, i.ID)
	if i.Token > a.token {
		a.fault("task %s has token %d, the last that was given is %d", i.ID, i.Token, a.token)
	}
	held := i.UniqueKey != "" && a.holders[i.UniqueKey] == i.ID
	started := i.Token > 0 && i.Until == taskqueue.Start
	switch {
	case held && i.State.Ended():
		a.fault("task %s holds the unique key %q though it has ended", i.ID, i.UniqueKey)
	case i.UniqueKey != "" && !held && !i.State.Ended() && !started:
		a.fault("task %s should hold the unique key %q", i.ID, i.UniqueKey)
	}
	if held {
		delete(a.holders, i.UniqueKey)
	}
}

func (a *audit) leftOver() {
	for id, where := range a.in {
		a.fault("%s is left over in %v", id, where)
	}
	for key, id := range a.holders {
		a.fault("the unique key %q is held by %s, which is not there", key, id)
	}
}

// parked reads which tasks limits keep.
func (a *audit) parked() error {
	members, err := a.s.client.ZRange(a.ctx, a.base+"limited", 0, -1).Result()
	for _, m := range members {
		group, at, found := strings.Cut(m, "\x00")
		if !found || len(at) < 18 {
			a.fault("%q is left over in limited", m)
			continue
		}
		a.in[at[17:]] = append(a.in[at[17:]], "limited")
		a.groups = append(a.groups, group)
	}
	return err
}

// limits compares the leases of each group with what is counted, and looks for parked tasks that
// nothing brings back though there is room.
func (a *audit) limits() error {
	counted, err := a.s.client.HGetAll(a.ctx, a.base+"held").Result()
	if err != nil {
		return err
	}
	for group, n := range counted {
		if strconv.FormatInt(a.held[group], 10) != n {
			a.fault("%s leases are counted under the limit %q, there are %d", n, group, a.held[group])
		}
	}
	for group, n := range a.held {
		if counted[group] == "" {
			a.fault("%d leases under the limit %q are not counted", n, group)
		}
	}
	got, err := a.s.run(a.ctx, a.s.scripts.look, a.queue, "settings", "limits")
	if err != nil {
		return err
	}
	set, err := limit.Parse(text(got))
	if err != nil || set == nil {
		return err
	}
	wakes, err := a.s.client.ZRange(a.ctx, a.base+"wakes", 0, -1).Result()
	slices.Sort(a.groups)
	for _, parked := range slices.Compact(a.groups) {
		group, current := strings.CutPrefix(parked, set.Prefix())
		if !current || slices.Contains(wakes, group) {
			continue // the next claims bring them back
		}
		if l := set.Group(group); l == nil || l.Concurrency == 0 || int(a.held[group]) < l.Concurrency {
			a.fault("tasks under the limit %q are parked, and nothing brings them back", group)
		}
	}
	return err
}
