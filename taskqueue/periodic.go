package taskqueue

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	cron "github.com/netresearch/go-cron"

	"github.com/ambit-go/ambit/taskqueue/internal/clock"
)

// lead is how long before its time a tick is enqueued. The store hands it out at its
// time, by the clock of the store.
const lead = time.Second

// cronParser reads the five fields of crontab(5), where a day that is given by its
// number or by its weekday is one that fits either, and the words @hourly and so on.
var cronParser = cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor | cron.DowOrDom)

// An EveryOption changes a periodic job.
type EveryOption func(*periodic)

// InZone is the time zone in which cron text is meant. Defaults to UTC, which is the
// same for all processes.
func InZone(zone *time.Location) EveryOption {
	if zone == nil {
		panic("taskqueue: InZone(nil): leave the option out instead")
	}
	return func(p *periodic) { p.zone = zone }
}

// CatchUp has one task added for ticks that were missed while no worker was there.
// Without it they are skipped.
func CatchUp() EveryOption { return func(p *periodic) { p.catchUp = true } }

// Every has workers of this process add a task at every tick of a schedule: cron
// text of five fields ("*/5 8-18 * * MON-FRI"), a word (@hourly, @daily, @weekly,
// @monthly, @yearly), or an interval ("@every 90s"), which ticks at whole multiples
// since 1970. Any number of processes may say the same: there is one task a tick.
// Of several schedules for one name the first that a store hears wins; the others
// are told to [Observe].
//
// The task must leave ID, Delay and RunAt open. It takes effect with the next call
// of Work on a queue of the same store.
func (q *Queue) Every(name, schedule string, t Task, opts ...EveryOption) error {
	if err := CheckName("name", name); err != nil {
		return err
	}
	if t.ID != "" || t.Delay != 0 || !t.RunAt.IsZero() {
		return invalid("Every", "the task of %q has an ID, a Delay or a RunAt: leave them open, each tick sets them", name)
	}
	if err := q.complete(&t); err != nil {
		return err
	}
	p := &periodic{name: name, text: schedule, task: t, zone: time.UTC}
	for _, o := range opts {
		o(p)
	}
	if err := p.parse(); err != nil {
		return invalid("schedule", "%q of %q is not understood: %v. Use five fields as in crontab, @hourly and the like, or @every 90s", schedule, name, err)
	}
	q.shared.mu.Lock()
	defer q.shared.mu.Unlock()
	if slices.ContainsFunc(q.shared.periodic, func(other *periodic) bool { return other.name == name && other.task.Queue == t.Queue }) {
		return invalid("name", "%q is in use in queue %s already", name, t.Queue)
	}
	q.shared.periodic = append(q.shared.periodic, p)
	return nil
}

// shared is what all queues of one New have in common.
type shared struct {
	mu       sync.Mutex
	periodic []*periodic
}

// A periodic is a periodic job of this process.
type periodic struct {
	name, text string
	task       Task
	zone       *time.Location
	catchUp    bool
	next       func(after time.Time) time.Time
}

func (p *periodic) parse() error {
	if d, is := strings.CutPrefix(p.text, "@every "); is {
		every, err := time.ParseDuration(strings.TrimSpace(d))
		if err == nil && every < time.Second {
			err = fmt.Errorf("an interval is at least a second")
		}
		p.next = func(after time.Time) time.Time { return gridAfter(after, every) }
		return err
	}
	s, err := cronParser.Parse(p.text)
	if err != nil {
		return err
	}
	p.next = func(after time.Time) time.Time { return s.Next(after.In(p.zone)) }
	return nil
}

// gridAfter returns the first whole multiple of d since 1970 that is after t.
func gridAfter(t time.Time, d time.Duration) time.Time {
	n := t.UnixNano()
	return time.Unix(0, n-n%int64(d)+int64(d))
}

// tick adds the tasks of a periodic job until ctx is done.
func (w *worker) tick(ctx context.Context, p *periodic) error {
	last := w.lastTick(ctx, p)
	now := clock.Now()
	if p.catchUp && !last.IsZero() {
		if at := p.latest(last, now); !at.IsZero() {
			w.addTick(ctx, p, at)
		}
	}
	for at := p.next(now); !at.IsZero(); at = p.next(maxTime(at, clock.Now())) {
		if sleep(ctx, clock.Until(at)-lead) != nil {
			return nil
		}
		w.addTick(ctx, p, at)
	}
	return nil
}

// lastTick asks the store for the last tick of p, and says so if it is known there
// with another schedule.
func (w *worker) lastTick(ctx context.Context, p *periodic) time.Time {
	for failures := 0; ; failures++ {
		all, err := w.q.store.Periodic(ctx, p.task.Queue)
		if err == nil {
			for _, known := range all {
				if known.Name != p.name {
					continue
				}
				if known.Schedule != p.text {
					w.q.tell(Event{Kind: EventSchedule, Queue: p.task.Queue, Type: p.task.Type,
						Err: fmt.Errorf("taskqueue: periodic job %q is known with the schedule %q, not %q", p.name, known.Schedule, p.text)})
					if other := (&periodic{text: known.Schedule, zone: p.zone}); other.parse() == nil {
						p.next = other.next
					}
				}
				return known.Last
			}
			return time.Time{}
		}
		w.q.tell(Event{Kind: EventStore, Queue: p.task.Queue, Err: err})
		if sleep(ctx, min(50*time.Millisecond<<min(failures, 5), maxIdle)) != nil {
			return time.Time{}
		}
	}
}

// latest returns the last tick after last and not after now; zero if there is none.
func (p *periodic) latest(last, now time.Time) (at time.Time) {
	from := last
	if day := now.Add(-24 * time.Hour); p.next(day).Before(now) && day.After(last) {
		from = day // not every minute of a year
	}
	for t := p.next(from); !t.IsZero() && !t.After(now); t = p.next(t) {
		at = t
	}
	return at
}

// addTick adds the task of one tick, unless another process has: again and again
// until the store answers.
func (w *worker) addTick(ctx context.Context, p *periodic, at time.Time) {
	t := p.task
	t.ID = p.name + "@" + at.UTC().Format(time.RFC3339)
	t.RunAt = at
	for failures := 0; ; failures++ {
		_, err := w.q.store.Tick(ctx, Tick{Queue: t.Queue, Name: p.name, Schedule: p.text, At: at, Task: NewTask{t}})
		if err == nil {
			return
		}
		w.q.tell(Event{Kind: EventStore, Queue: t.Queue, Err: err})
		if sleep(ctx, min(50*time.Millisecond<<min(failures, 5), maxIdle)) != nil {
			return
		}
	}
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
