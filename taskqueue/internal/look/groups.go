package look

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/limit"
	"github.com/ambit-go/ambit/taskqueue/internal/plain"
	"github.com/ambit-go/ambit/taskqueue/internal/sums"
)

// numbers are ids, addresses, times and the like, which differ between errors that are alike. A short number, such as
// the status of an answer, tells errors apart.
var numbers = regexp.MustCompile(`[0-9A-Za-z]*[0-9][0-9A-Za-z]*`)

// Alike returns what errors that are alike have in common: their first line that is not blank, with # in place of
// numbers. It is never empty: an empty Alike of a Filter means all errors.
func Alike(text string) string {
	text, _, _ = strings.Cut(strings.TrimLeftFunc(text, unicode.IsSpace), "\n")
	text = cmp.Or(text, "(no text)")
	return numbers.ReplaceAllStringFunc(plain.Line(plain.Head(text, 200)), func(s string) string {
		if len(s) < 4 {
			return s
		}
		return "#"
	})
}

// failures groups tasks that have failed by type and error.
func (p *part) failures(dead, retrying []taskqueue.Info) {
	groups := map[[2]string]*Failure{}
	note := func(t *taskqueue.Info, at time.Time) *Failure {
		key := [2]string{t.Type, Alike(t.LastError)}
		f := groups[key]
		if f == nil {
			f = &Failure{Queue: p.queue.Name, Type: key[0], Alike: key[1]}
			groups[key] = f
		}
		if f.ID == "" || at.After(f.Last) {
			f.ID, f.Last, f.Error = t.ID, at, plain.Text(plain.Head(t.LastError, maxError))
		}
		return f
	}
	for i := range dead {
		note(&dead[i], dead[i].EndedAt).Dead++
	}
	for i := range retrying {
		note(&retrying[i], retrying[i].StartedAt).Retrying++
	}
	for _, f := range groups {
		f.MoreDead = f.Dead > 0 && p.queue.States[taskqueue.StateDead] > int64(len(dead))
		f.MoreRetrying = f.Retrying > 0 && p.queue.States[taskqueue.StateRetrying] > int64(len(retrying))
		p.Failures = append(p.Failures, *f)
	}
}

// kinds finds the types, with their figures of the last hour.
func (p *part) kinds(ctx context.Context, store taskqueue.Store, running []taskqueue.Info, now time.Time) error {
	kinds := map[string]*Kind{}
	of := func(name string) *Kind {
		if kinds[name] == nil {
			kinds[name] = &Kind{Queue: p.queue.Name, Type: name}
		}
		return kinds[name]
	}
	if notes, is := store.(taskqueue.NoteStore); is {
		all, err := sums.Types(ctx, notes, p.queue.Name)
		if err != nil {
			return err
		}
		var names []string
		for name, total := range all {
			names = append(names, name)
			of(name).Total = total
		}
		last, err := sums.Last(ctx, notes, p.queue.Name, names, sums.TenMinutes, 7, now)
		if err != nil {
			return err
		}
		for name, hour := range last {
			for i := range hour {
				of(name).Hour.Add(&hour[i])
			}
		}
	}
	for i := range running {
		of(running[i].Type).Running++
	}
	for _, f := range p.Failures {
		of(f.Type).Dead += f.Dead
		of(f.Type).Retrying += f.Retrying
	}
	for _, k := range kinds {
		k.Done, k.Failed = k.Hour.Done, k.Hour.Failed
		k.LateSeconds, k.TookSeconds = k.Hour.Late.Mean().Seconds(), k.Hour.Took.Mean().Seconds()
		k.MostSeconds = k.Hour.Took.Most(0.99).Seconds()
		p.Kinds = append(p.Kinds, *k)
	}
	return nil
}

// kept groups the tasks that limits keep by their keys, or by their types if they have no key that counts.
func (p *part) kept(limited, running []taskqueue.Info) {
	if len(p.queue.Limits) == 0 {
		return
	}
	set := limit.Of(p.queue.Limits)
	groups := map[string]*Kept{}
	of := func(t *taskqueue.Info) *Kept {
		name, l := set.Of(t.LimitKey, t.Type)
		if l == nil {
			return new(Kept)
		}
		if groups[name] == nil {
			groups[name] = &Kept{Queue: p.queue.Name, Limit: *l}
			if l.Key != "" {
				groups[name].Key = t.LimitKey
			}
		}
		return groups[name]
	}
	for i := range limited {
		if limited[i].Limited {
			of(&limited[i]).Waiting++
		}
	}
	for i := range running {
		of(&running[i]).Running++
	}
	for _, k := range groups {
		k.More = k.Waiting > 0 && p.queue.Limited > MaxSample
		p.Kept = append(p.Kept, *k)
	}
	slices.SortFunc(p.Kept, func(a, b Kept) int {
		return cmp.Or(b.Waiting-a.Waiting, b.Running-a.Running, cmp.Compare(a.Key, b.Key), cmp.Compare(a.Limit.Type, b.Limit.Type))
	})
	p.Kept = p.Kept[:min(len(p.Kept), MaxShown)]
}

// waiting finds the tasks that most others wait for. Those that are done by now are not told.
func (p *part) waiting(ctx context.Context, store taskqueue.Store, waiting []taskqueue.Info) error {
	children := map[string]int{}
	for _, t := range waiting {
		for _, id := range t.After {
			children[id]++
		}
	}
	var parents []Parent
	more := p.queue.States[taskqueue.StateWaiting] > int64(len(waiting))
	for id, n := range children {
		parents = append(parents, Parent{Queue: p.queue.Name, ID: id, Children: n, More: more})
	}
	slices.SortFunc(parents, func(a, b Parent) int { return cmp.Or(b.Children-a.Children, cmp.Compare(a.ID, b.ID)) })
	for _, one := range parents[:min(len(parents), 2*MaxShown)] {
		t, err := store.Get(ctx, p.queue.Name, one.ID)
		switch {
		case err != nil && !errors.Is(err, taskqueue.ErrNotFound):
			return err
		case err == nil && t.State == taskqueue.StateDone:
			continue
		}
		one.Type, one.State, one.Error = t.Type, t.State, plain.Text(plain.Head(t.LastError, maxError))
		if p.Waiting = append(p.Waiting, one); len(p.Waiting) == MaxShown {
			break
		}
	}
	return nil
}
