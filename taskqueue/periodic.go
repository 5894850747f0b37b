package taskqueue

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	cron "github.com/netresearch/go-cron"

	"github.com/ambit-go/ambit/taskqueue/internal/clock"
)

const (
	// lead is how long before its time a tick is enqueued. The store hands it out at its
	// time, by the clock of the store.
	lead = time.Second
	// missed is how late a tick may be: later than that nobody was there.
	missed = time.Minute
	// tickID is what the id of a tick has behind the name of its job.
	tickID = "@2006-01-02T15:04:05Z"
)

// cronParser reads the five fields of crontab(5), where a day that is given by its
// number or by its weekday is one that fits either, and the words @hourly and so on.
var cronParser = cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor | cron.DowOrDom)

// An EveryOption changes a periodic job.
type EveryOption func(*periodic)

// InZone is the time zone in which cron text is meant. Defaults to UTC, which is the
// same for all processes. It must be one that others know by its name, as those of
// [time.LoadLocation] are: "Local" is another zone on each machine. Where the clocks
// change, a time that there is not comes an hour later, and one that there is twice
// comes once, the first time, unless the hours begin with a star. Nil panics.
func InZone(zone *time.Location) EveryOption {
	if zone == nil {
		panic("taskqueue: InZone(nil): leave the option out instead")
	}
	return func(p *periodic) { p.zone = zone }
}

// CatchUp has one task added for ticks that were missed while no worker was there,
// however many they were, at the time of the last of them. Without it they are
// skipped. Ticks of more than a day ago are not looked for if there is a later one.
func CatchUp() EveryOption { return func(p *periodic) { p.catchUp = true } }

// DefinedAt is how new a schedule is, as the date on which it was written. The newest of several
// schedules for one name is in force, on all processes. Defaults to when this
// program was made: the time of the commit that it was built of, if it knows that, else
// that of its file.
func DefinedAt(at time.Time) EveryOption { return func(p *periodic) { p.defined = at } }

// Every has workers of this process add a task at every tick of a schedule: cron
// text of five fields ("*/5 8-18 * * MON-FRI"), a word (@hourly, @daily, @weekly,
// @monthly, @yearly), or an interval of whole seconds ("@every 90s"), which ticks at
// whole multiples since 1970.
//
// Any number of processes may say the same: there is one task a tick, whose ID is the
// name and the time. If there are several schedules for one name in a queue, the newest
// is in force, see [DefinedAt]: deploy a program with another schedule, and all workers follow
// it. An older process is told once, to [Observe] as [EventSchedule]; so is one whose
// schedule is as new and came later. A program that is deployed again, and is older, does not
// bring its schedule back before [Queue.Unschedule] is called. The task and CatchUp are
// those of the process that adds the tick.
//
// The task must leave ID, Delay, RunAt and ExpiresAt open. It takes effect with the
// next call of Work on q, or on a queue that has been made of q, or q of it, by In. An
// error is an [*InvalidError].
func (q *Queue) Every(name, schedule string, t Task, opts ...EveryOption) error {
	if err := CheckName("name", name); err != nil {
		return err
	}
	if most := MaxName - len(tickID); len(name) > most {
		return invalid("name", "it has %d bytes, at most %d are allowed: the ids of its tasks are made of it", len(name), most)
	}
	if t.ID != "" || t.Delay != 0 || !t.RunAt.IsZero() || !t.ExpiresAt.IsZero() {
		return invalid("Every", "the task of %q has an ID, a Delay, a RunAt or an ExpiresAt: leave them open, each tick has its own", name)
	}
	if err := errors.Join(q.complete(&t), t.check()); err != nil {
		return err
	}
	p := &periodic{name: name, task: t, zone: time.UTC, defined: madeAt()}
	for _, o := range opts {
		o(p)
	}
	if err := p.parse(schedule); err != nil {
		return invalid("schedule", "%q of %q is not understood: %v. Use five fields as in crontab, @hourly and the like, or @every 90s", schedule, name, err)
	}
	if err := CheckName("schedule", p.text); err != nil {
		return err
	}
	q.shared.mu.Lock()
	defer q.shared.mu.Unlock()
	if slices.ContainsFunc(q.shared.periodic, func(other *periodic) bool { return other.name == name && other.task.Queue == t.Queue }) {
		return invalid("name", "%q is in use in queue %s already: take another", name, t.Queue)
	}
	q.shared.periodic = append(q.shared.periodic, p)
	return nil
}

// Periodic returns the periodic jobs of the queue that a worker has defined, with their
// schedules and when they ticked last.
func (q *Queue) Periodic(ctx context.Context) ([]Periodic, error) {
	return q.store.Periodic(ctx, q.name)
}

// Next returns the first tick after a time by the schedule; zero if this program does not understand it.
func (p Periodic) Next(after time.Time) time.Time {
	known := periodic{zone: time.UTC}
	if known.parse(p.Schedule) != nil {
		return time.Time{}
	}
	return known.next(after)
}

// Unschedule has the store forget a periodic job, and reports whether it was known.
// The next worker that adds a tick, or starts, decides its schedule anew: workers that still
// say [Queue.Every] bring it back with theirs. Tasks that have been added stay.
func (q *Queue) Unschedule(ctx context.Context, name string) (bool, error) {
	return q.store.Unschedule(ctx, q.name, name)
}

// shared is what all queues of one New have in common.
type shared struct {
	mu       sync.Mutex
	periodic []*periodic
}

// A periodic is a periodic job of this process. It is not changed once Every has
// returned; each worker has a copy.
type periodic struct {
	name    string
	text    string // of the schedule with its zone, as it is compared with that of others
	defined time.Time
	task    Task
	zone    *time.Location
	catchUp bool
	next    func(after time.Time) time.Time
}

// parse sets text and next.
func (p *periodic) parse(text string) error {
	text = strings.TrimSpace(text)
	for _, sign := range []string{"CRON_TZ=", "TZ="} {
		if named, is := strings.CutPrefix(text, sign); is {
			zone, rest, _ := strings.Cut(named, " ")
			loaded, err := time.LoadLocation(zone)
			if err != nil {
				return err
			}
			p.zone, text = loaded, strings.TrimSpace(rest)
			break
		}
	}
	if d, is := strings.CutPrefix(text, "@every "); is {
		return p.parseInterval(strings.TrimSpace(d))
	}
	if strings.HasPrefix(strings.ToLower(text), "@every") {
		return errors.New("an interval is written as @every 90s")
	}
	s, err := cronParser.Parse(text)
	if err != nil {
		return err
	}
	zone := p.zone
	if p.text, err = zoned(zone, text); err != nil {
		return err
	}
	hourly := everyHour(text)
	p.next = func(after time.Time) time.Time {
		at := s.Next(after.In(zone))
		for !hourly && again(at) {
			at = s.Next(at)
		}
		return at
	}
	if p.next(clock.Now()).IsZero() {
		return errors.New("there is no such time")
	}
	return nil
}

// everyHour reports whether cron text is of something that happens all day long. It happens also
// in an hour that there is twice, and other things do once.
func everyHour(text string) bool {
	fields := strings.Fields(text)
	return text == "@hourly" || len(fields) > 1 && strings.HasPrefix(fields[1], "*")
}

// again reports whether the clocks were put back, and have shown the time of at before.
func again(at time.Time) bool {
	_, offset := at.Zone()
	for _, back := range []time.Duration{30 * time.Minute, time.Hour, 2 * time.Hour} {
		if _, before := at.Add(-back).Zone(); time.Duration(before-offset)*time.Second == back {
			return true
		}
	}
	return false
}

func (p *periodic) parseInterval(d string) error {
	every, err := time.ParseDuration(d)
	if err != nil {
		return err
	}
	if every < time.Second || every%time.Second != 0 {
		return errors.New("an interval is a number of whole seconds, at least one")
	}
	p.text = "@every " + every.String()
	p.next = func(after time.Time) time.Time { return gridAfter(after, every) }
	return nil
}

// zoned returns cron text with the name of its zone, from which other processes know
// the zone.
func zoned(zone *time.Location, text string) (string, error) {
	name, now := zone.String(), clock.Now()
	if _, offset := now.In(zone).Zone(); name == "UTC" && offset == 0 { // that of time.Local may be called so
		return text, nil
	}
	known, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" || now.In(known).Format("-0700") != now.In(zone).Format("-0700") {
		return "", fmt.Errorf("other processes do not know the zone %q: take one of time.LoadLocation", zone)
	}
	return "CRON_TZ=" + name + " " + text, nil
}

// gridAfter returns the first whole multiple of d since 1970 that is after t.
func gridAfter(t time.Time, d time.Duration) time.Time {
	n := t.UnixNano()
	return time.Unix(0, n-n%int64(d)+int64(d))
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

// madeAt returns when this program was made: the time of its commit, if it was built with one
// that it knows, else that of its file, zero if there is none.
var madeAt = sync.OnceValue(func() time.Time {
	if info, ok := debug.ReadBuildInfo(); ok {
		if at := commitTime(info.Settings); !at.IsZero() {
			return at
		}
	}
	name, err := os.Executable()
	if err != nil {
		return time.Time{}
	}
	file, err := os.Stat(name)
	if err != nil {
		return time.Time{}
	}
	return file.ModTime()
})

// commitTime returns the time of the commit that a program was built of, zero if it is not
// known, or if files were changed since.
func commitTime(settings []debug.BuildSetting) (at time.Time) {
	for _, s := range settings {
		switch {
		case s.Key == "vcs.time":
			at, _ = time.Parse(time.RFC3339, s.Value)
		case s.Key == "vcs.modified" && s.Value == "true":
			return time.Time{}
		}
	}
	return at
}
