package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/locks"
)

const (
	demoLease = 2 * time.Second
	demoKey   = "counter"
)

// A demonstration is twenty processes that increment a counter in a file, under a lock.
type demonstration struct {
	p       *program
	dir     string
	url     string
	n       int // processes
	rounds  int // of each
	workers []*exec.Cmd

	mu     sync.Mutex
	struck map[int]string // by pid: what was done to it
}

// demo runs it. One process is stopped while it holds the lock, and goes on when somebody
// else has had it; another is stopped and killed. The report is put together from what the
// processes have written down and what is in the file.
func demo(ctx context.Context, p *program, l *line) error {
	dir, err := os.MkdirTemp("", "db-locks-demo-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if l.processes < 4 || l.rounds < 2 {
		return usagef("demo needs 4 processes and 2 rounds at least")
	}
	d := &demonstration{p: p, dir: dir, url: "sqlite:" + filepath.Join(dir, "locks.db"), n: l.processes, rounds: l.rounds, struck: map[int]string{}}
	if l.url != "" || l.provider != "" {
		d.url = p.cfg.url
	}
	if err := os.WriteFile(d.counter(), []byte("0 0"), 0o600); err != nil {
		return err
	}
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(p.stderr, format+"\n", args...) }
	say("%d processes increment a counter, %d times each, under a lock with a lease of %v", d.n, d.rounds, demoLease)
	err = async.Scope(ctx, func(ctx context.Context) error {
		for range d.n - 4 {
			if _, err := d.start(ctx, "none"); err != nil {
				return err
			}
		}
		for _, fate := range []string{"stopped", "killed"} {
			if err := d.strike(ctx, fate, say); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return d.report()
}

func (d *demonstration) counter() string { return filepath.Join(d.dir, "counter") }
func (d *demonstration) journal() string { return filepath.Join(d.dir, "journal") }

// start starts a process, which ends by itself or with the scope. brake is a file: while it
// is there, the work under the lock does not end.
func (d *demonstration) start(ctx context.Context, brake string) (*os.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "demo-worker", d.url, d.counter(), d.journal(), strconv.Itoa(d.rounds), filepath.Join(d.dir, brake))
	cmd.Stderr = d.p.stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	d.workers = append(d.workers, cmd)
	async.Go(ctx, func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
		defer stop()
		err := cmd.Wait()
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.struck[cmd.Process.Pid] == "killed" || ctx.Err() != nil {
			return nil
		}
		return err
	}, async.Name(fmt.Sprint("worker ", cmd.Process.Pid)))
	return cmd.Process, nil
}

// strike starts a process, stops it while it holds the lock, starts another, which is there
// to get the lock, and when somebody has written under it has the first one meet its fate.
func (d *demonstration) strike(ctx context.Context, fate string, say func(string, ...any)) error {
	brake := filepath.Join(d.dir, fate)
	if err := os.WriteFile(brake, nil, 0o600); err != nil {
		return err
	}
	victim, err := d.start(ctx, fate)
	if err != nil {
		return err
	}
	has, err := d.noted(ctx, func(n note) bool { return n.pid == victim.Pid && n.what == "has" })
	if err != nil {
		return err
	}
	if err := pauseProcess(victim); err != nil {
		return err
	}
	say("process %d holds the lock and is stopped", victim.Pid)
	d.mu.Lock()
	d.struck[victim.Pid] = fate
	d.mu.Unlock()
	if _, err := d.start(ctx, "none"); err != nil {
		return err
	}
	if _, err := d.noted(ctx, func(n note) bool { return n.token > has.token && n.what == "wrote" }); err != nil {
		return err
	}
	if err := os.Remove(brake); err != nil {
		return err
	}
	if fate == "killed" {
		_ = victim.Kill()
		say("others have had the lock since; process %d is killed", victim.Pid)
		return nil
	}
	say("others have had the lock since; process %d goes on, and thinks it has the lock", victim.Pid)
	return resumeProcess(victim)
}

// noted waits for a line of the journal.
func (d *demonstration) noted(ctx context.Context, is func(note) bool) (note, error) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		notes, err := d.read()
		if err != nil {
			return note{}, err
		}
		if i := slices.IndexFunc(notes, is); i >= 0 {
			return notes[i], nil
		}
		if err := async.Sleep(ctx, 5*time.Millisecond); err != nil {
			return note{}, err
		}
	}
	return note{}, errors.New("nobody got the lock for a minute")
}

// A note is a line of the journal: a process has the lock, has written, was refused.
type note struct {
	pid   int
	what  string
	token int64
	value int
}

// read reads the journal. Its lines are in the order in which they were written.
func (d *demonstration) read() (notes []note, err error) {
	f, err := os.Open(d.journal())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var n note
		if _, err := fmt.Sscan(lines.Text(), &n.pid, &n.what, &n.token, &n.value); err == nil {
			notes = append(notes, n)
		}
	}
	return notes, nil
}

// A demoReport is what came of it.
type demoReport struct {
	Processes  int      `json:"processes"`
	Grants     int      `json:"grants"`
	Increments int      `json:"increments"`
	Counter    int      `json:"counter"`
	LostLeases int      `json:"lost_leases"`
	Refused    int      `json:"refused_writes"`
	FirstToken int64    `json:"first_token"`
	LastToken  int64    `json:"last_token"`
	Faults     []string `json:"faults"`
}

// report compares what was written down with what there is.
func (d *demonstration) report() error {
	notes, err := d.read()
	if err != nil {
		return err
	}
	r := audit(notes)
	r.Processes = len(d.workers)
	text, err := os.ReadFile(d.counter())
	if err != nil {
		return err
	}
	var token int64
	if _, err := fmt.Sscan(string(text), &token, &r.Counter); err != nil {
		return err
	}
	if r.Counter != r.Increments {
		r.Faults = append(r.Faults, fmt.Sprintf("the counter is %d after %d increments", r.Counter, r.Increments))
	}
	if err := d.p.print(r, "%s", r); err != nil {
		return err
	}
	if len(r.Faults) > 0 {
		return &statusError{errors.New("faults were found: see the report"), 1}
	}
	return nil
}

// audit looks for what must not be: a token that is not greater than the one before, or two
// that have written under the lock at a time.
func audit(notes []note) demoReport {
	r := demoReport{Faults: []string{}}
	fault := func(format string, args ...any) { r.Faults = append(r.Faults, fmt.Sprintf(format, args...)) }
	var newest int64
	value := 0
	for _, n := range notes {
		switch n.what {
		case "has":
			r.Grants++
			if n.token <= newest {
				fault("token %d was granted after %d", n.token, newest)
			}
			newest = n.token
			if r.FirstToken == 0 {
				r.FirstToken = n.token
			}
		case "wrote":
			r.Increments++
			if n.token != newest {
				fault("process %d wrote with token %d after %d was granted", n.pid, n.token, newest)
			}
			if n.value != value+1 {
				fault("process %d wrote %d after %d", n.pid, n.value, value)
			}
			value = n.value
		case "lost":
			r.LostLeases++
		case "refused":
			r.Refused++
		}
	}
	r.LastToken = newest
	return r
}

// String writes it for people.
func (r demoReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the report\n")
	fmt.Fprintf(&b, "  processes        %6d\n", r.Processes)
	fmt.Fprintf(&b, "  grants           %6d   (in the order of their tokens: %d to %d)\n", r.Grants, r.FirstToken, r.LastToken)
	fmt.Fprintf(&b, "  increments       %6d   and the counter is %d\n", r.Increments, r.Counter)
	fmt.Fprintf(&b, "  leases lost      %6d   (told to the body by its ctx, and by With)\n", r.LostLeases)
	fmt.Fprintf(&b, "  writes refused   %6d   (by the file, which has seen a greater token)\n", r.Refused)
	fmt.Fprintf(&b, "  faults           %6d", len(r.Faults))
	for _, f := range r.Faults {
		fmt.Fprintf(&b, "\n    %s", f)
	}
	return b.String()
}

// errRefused says that the resource has seen a greater token.
var errRefused = errors.New("the write was refused: a greater token was seen")

// demoWorker is one of the processes.
func demoWorker(ctx context.Context, args []string) error {
	if len(args) != 5 {
		return usagef("demo-worker is for demo alone")
	}
	rounds, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	store, err := locks.Open(ctx, args[0])
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	m, err := locks.New(store, locks.Lease(max(demoLease, store.Traits().MinLease)))
	if err != nil {
		return err
	}
	journal, err := os.OpenFile(args[2], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = journal.Close() }()
	w := &demoWork{counter: args[1], journal: journal, brake: args[4]}
	for range rounds {
		if err := w.round(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

type demoWork struct {
	counter string
	journal *os.File
	brake   string
	token   int64
}

func (w *demoWork) note(what string, value int) {
	_, _ = fmt.Fprintf(w.journal, "%d %s %d %d\n", os.Getpid(), what, w.token, value)
}

// work does not look at its ctx.
func (w *demoWork) work() {
	for err := error(nil); err == nil; _, err = os.Stat(w.brake) {
		time.Sleep(3 * time.Millisecond)
	}
}

// round increments the counter once under the lock. A lock that was lost, and a write that
// was refused, are tried again.
func (w *demoWork) round(ctx context.Context, m *locks.Manager) error {
	for {
		err := m.With(ctx, demoKey, func(ctx context.Context) error {
			w.token = locks.From(ctx).Token()
			w.note("has", 0)
			value, err := readCounter(w.counter)
			if err != nil {
				return err
			}
			w.work()
			err = writeCounter(w.counter, w.token, value+1, func() { w.note("wrote", value+1) })
			if errors.Is(err, errRefused) {
				w.note("refused", value+1)
			}
			return err
		})
		var lost *locks.LostError
		switch {
		case errors.As(err, &lost):
			w.note("lost", 0)
		case errors.Is(err, locks.ErrNotReleased):
			return nil // all was done under the lock, which ends with its lease
		case errors.Is(err, locks.ErrUnavailable) && ctx.Err() == nil: // a busy machine: once more
		case err != nil && !errors.Is(err, errRefused):
			return err
		default:
			return nil
		}
	}
}

func readCounter(path string) (value int, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	var token int64
	_, err = fmt.Sscan(string(text), &token, &value)
	return value, err
}
