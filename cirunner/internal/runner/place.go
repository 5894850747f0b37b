//go:build unix

package runner

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/ambit-go/ambit/cirunner/internal/engine"
	"github.com/ambit-go/ambit/proc"
)

// A place is where the shells of an attempt run: this machine, or a container. The attempt
// owns the work directory, the log, and the order of things; the place owns what runs.
type place interface {
	// open makes the place, and starts what the job has beside it there. It gives up when
	// the work of the attempt ends. All that it has started belongs to the scope of ctx, and is
	// gone when that has ended, also if open has failed.
	open(ctx context.Context) error

	// shell runs a script, one at a time, and blocks until it has ended and nothing of it is
	// left but services. The end of ctx is told to it by TERM and, after the grace, by KILL;
	// the end of the run's scope by KILL at once. Its result and its error are as those of
	// proc.Run.
	shell(ctx context.Context, s shell, environ []string, out io.Writer) (proc.Result, error)

	// settle has this process read and remove the files that scripts have made.
	settle(ctx context.Context)
}

// inContainer reports whether the job runs in a container.
func (a *attempt) inContainer() bool { return a.job.Image != nil && a.r.Engine != nil }

func (a *attempt) newPlace() place {
	if a.inContainer() {
		return &container{a: a, engine: a.r.Engine}
	}
	return &host{a}
}

// host is this machine. Its services are commands, which the attempt starts by shell.
type host struct{ a *attempt }

func (h *host) open(ctx context.Context) error { return h.a.startServices(ctx) }

// shell runs a bash, in a process group that is on record as long as the run lasts.
func (h *host) shell(ctx context.Context, s shell, environ []string, out io.Writer) (proc.Result, error) {
	a := h.a
	path := a.r.Work.Path("scripts", a.slug()+"."+s.name)
	if err := writeScript(path, 0o600, s.text); err != nil {
		return proc.Result{}, err
	}
	defer func() { _ = os.Remove(path) }()
	return proc.Run(ctx, proc.Command{
		Args: []string{"bash", path}, Name: s.name, Dir: a.dir, Env: environ,
		Stdout: out, Stderr: out, Grace: s.grace, Hurry: a.r.hard, Started: a.record,
	})
}

func (h *host) settle(context.Context) {}

// record writes down a process group.
func (a *attempt) record(pid int) {
	_ = a.r.Work.Record(pid, a.job.Name) // only the next run would miss it
}

// scriptsDir is a directory of scripts that the container of the job sees.
func (a *attempt) scriptsDir() string { return a.r.Work.Path("scripts", a.slug()) }

// labels are those of everything that the job has in the engine: of the run and of itself.
func (a *attempt) labels() []string {
	return []string{engine.RunLabel(a.r.Work.Dir), a.label()}
}

func (a *attempt) label() string {
	return "cirunner.job=" + filepath.Join(a.r.Work.Dir, "jobs", a.slug())
}
