package taskqueuetest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/classes"
	"github.com/ambit-go/ambit/taskqueue/store"
)

func (p *program) setLimit() error {
	l := []taskqueue.Limit{{Key: "t-1"}, {Key: "t-*"}, {Key: "*"}, {Type: "t"}}[p.pick(4)]
	of := l
	l.Concurrency = p.pick(3)
	if p.pick(3) == 0 {
		l.Rate, l.Burst = float64(1+p.pick(4))/p.unit.Seconds(), p.pick(3)
	}
	p.note("SetLimit %+v", l)
	if p.m.limits[of] = l; l.Lifts() {
		delete(p.m.limits, of)
	}
	return p.s.SetLimit(ctx, queue, l)
}

// limit returns the limit that a task is under, and the name of those who are counted with it.
func (m *model) limit(t *modelTask) (group string, l *taskqueue.Limit) {
	longest := -1
	for of, one := range m.limits {
		begin, many := strings.CutSuffix(of.Key, "*")
		switch {
		case t.task.LimitKey == "" || of.Key == "" || len(of.Key) <= longest:
		case of.Key == t.task.LimitKey:
			l, longest = &one, math.MaxInt
		case many && strings.HasPrefix(t.task.LimitKey, begin):
			l, longest = &one, len(of.Key)
		}
	}
	if l != nil {
		return "key " + t.task.LimitKey, l
	}
	if one, ok := m.limits[taskqueue.Limit{Type: t.task.Type}]; ok {
		return "type " + t.task.Type, &one
	}
	return "", nil
}

// A share is how many tasks of a group a claim may begin.
type share struct {
	limit     *taskqueue.Limit
	low, high int  // what a rate allows may be rounded
	expired   bool // one of the tasks will not be run, and may be in the place of another
	got       int
}

// shares are those of all groups that have tasks which are due.
func (m *model) shares(due []*modelTask, now time.Time) map[string]*share {
	all := map[string]*share{}
	for _, t := range due {
		group, l := m.limit(t)
		if l == nil {
			continue
		}
		s := all[group]
		if s == nil {
			s = m.share(group, l, now)
			all[group] = s
		}
		s.expired = s.expired || t.expired(now)
	}
	return all
}

func (m *model) share(group string, l *taskqueue.Limit, now time.Time) *share {
	n := math.MaxInt
	if l.Concurrency > 0 {
		n = l.Concurrency
		for _, t := range m.tasks {
			if t.state == taskqueue.StateRunning && t.group == group {
				n--
			}
		}
		n = max(n, 0)
	}
	if l.Rate == 0 {
		return &share{limit: l, low: n, high: n}
	}
	burst := float64(max(l.Burst, 1))
	allowed := burst - min(max(m.fullAt[group].Sub(now).Seconds(), 0)*l.Rate, burst)
	const rounding = 2e-3
	return &share{limit: l, low: min(n, max(int(math.Floor(allowed-rounding)), 0)), high: min(n, int(math.Floor(allowed+rounding)))}
}

func (t *modelTask) expired(now time.Time) bool {
	return t.attempt == 0 && !t.lasts && !t.task.ExpiresAt.IsZero() && t.task.ExpiresAt.Before(now)
}

// taken checks what a claim has taken; reaped are the dead letters that it has made of leases.
func (m *model) taken(r store.ClaimRequest, got taskqueue.Claimed, reaped []string) error {
	now := got.Now
	var due []*modelTask
	for _, t := range m.tasks {
		if t.waits() && !t.dueLow.After(now) {
			due = append(due, t)
		}
	}
	order := classes.Order(r.Weigh)
	class := func(t *modelTask) int { return slices.Index(order, taskqueue.Priorities-1-int(t.task.Priority)) }
	slices.SortFunc(due, func(a, b *modelTask) int {
		return cmp.Or(cmp.Compare(class(a), class(b)), a.dueLow.Compare(b.dueLow), cmp.Compare(a.task.ID, b.task.ID))
	})
	low, high := m.most(r, now)
	shares := m.shares(due, now)
	if len(got.Tasks) > max(high, 0) {
		return fmt.Errorf("claim got %d tasks, the model allows %d", len(got.Tasks), high)
	}
	places, err := places(due, got, now)
	if err != nil {
		return err
	}
	for _, at := range places {
		if group, l := m.limit(due[at]); l != nil {
			if shares[group].got++; shares[group].got > shares[group].high {
				return fmt.Errorf("claim got %d tasks under the limit of %s, the model %d", shares[group].got, group, shares[group].high)
			}
		}
	}
	if err := m.passed(due, places, shares, got, len(got.Tasks) < low, r.Weigh == 0); err != nil {
		return err
	}
	if len(got.Tasks) >= high && len(m.limits) == 0 {
		if err := notLooked(due, places, got); err != nil {
			return err
		}
	}
	return m.beginAll(r, got, reaped)
}

// places are where the tasks of a claim stand among those that are due.
func places(due []*modelTask, got taskqueue.Claimed, now time.Time) (all []int, err error) {
	for _, g := range got.Tasks {
		at := slices.IndexFunc(due, func(t *modelTask) bool { return t.task.ID == g.ID })
		switch {
		case at < 0 || due[at].expired(now):
			return nil, fmt.Errorf("claim got %s, which is not to be run now", g.ID)
		case len(all) > 0 && at < all[len(all)-1]:
			return nil, fmt.Errorf("claim got %s behind %s", g.ID, due[all[len(all)-1]].task.ID)
		}
		all = append(all, at)
	}
	return all, nil
}

// passed checks that the claim has left only what a limit keeps, of what stands before the last
// task that it got; all: or behind it.
func (m *model) passed(due []*modelTask, places []int, shares map[string]*share, got taskqueue.Claimed, all, strict bool) error {
	for at, t := range due {
		behind := len(places) == 0 || at > places[len(places)-1]
		if behind && !all || slices.Contains(places, at) || slices.Contains(got.Dead, t.task.ID) {
			continue
		}
		group, l := m.limit(t)
		if l == nil {
			return fmt.Errorf("claim left %s, which no limit keeps", t.task.ID)
		}
		s := shares[group]
		if s.expired {
			continue
		}
		if s.got < s.low {
			return fmt.Errorf("claim left %s, and there is room in %s: %d of %d", t.task.ID, group, s.got, s.low)
		}
		later := func(place int) bool {
			other, _ := m.limit(due[place])
			return place > at && other == group
		}
		if strict && s.low == s.high && slices.ContainsFunc(places, later) {
			return fmt.Errorf("claim left %s, and took one of %s behind it", t.task.ID, group)
		}
	}
	return nil
}

// notLooked checks that a claim has not looked behind the last task that it was allowed.
func notLooked(due []*modelTask, places []int, got taskqueue.Claimed) error {
	first := 0
	if len(places) > 0 {
		first = places[len(places)-1]
	}
	for _, t := range due[min(first, len(due)):] {
		if slices.Contains(got.Dead, t.task.ID) {
			return fmt.Errorf("claim said that %s is a dead letter by it, and had no place left for it", t.task.ID)
		}
	}
	return nil
}

// beginAll takes over what the claim has done.
func (m *model) beginAll(r store.ClaimRequest, got taskqueue.Claimed, reaped []string) error {
	for _, id := range got.Dead {
		t := m.tasks[id]
		if slices.Contains(reaped, id) {
			continue
		}
		if t == nil || !t.waits() || t.dueLow.After(got.Now) || !t.expired(got.Now) {
			return fmt.Errorf("claim said that %s is a dead letter by it, in the model it is not", id)
		}
		m.over(t, taskqueue.StateDead, taskqueue.CountDead)
		m.counts[taskqueue.CountExpired]++
		t.ended, t.reaped = got.Now, false
	}
	for _, id := range reaped {
		if !slices.Contains(got.Dead, id) {
			return fmt.Errorf("claim did not say that %s is a dead letter by it", id)
		}
	}
	if m.settings.Rate > 0 {
		m.allowance -= float64(len(got.Tasks))
	}
	m.claims[r.Worker] = nil
	for _, g := range got.Tasks {
		t := m.tasks[g.ID]
		if group, l := m.limit(t); l != nil && l.Rate > 0 {
			span := time.Duration(float64(time.Second) / l.Rate)
			at := m.fullAt[group]
			if most := got.Now.Add(span * time.Duration(max(l.Burst, 1)-1)); at.After(most) {
				at = most
			}
			if at.Before(got.Now) {
				at = got.Now
			}
			m.fullAt[group] = at.Add(span)
		}
		if err := m.begin(r, t, g, got.Now); err != nil {
			return err
		}
	}
	m.release(got.Now, got.Now)
	return m.nextDue(got)
}
