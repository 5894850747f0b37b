//go:build unix

package runner

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/cirunner/internal/engine"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/vars"
	"github.com/ambit-go/ambit/proc"
)

// A container is the place of a job with an image: a network, a container for each service,
// and one in which the scripts of the job run, one after the other.
type container struct {
	a      *attempt
	engine *engine.Engine
	job    *engine.Container // nil until it is started
	hosts  []string          // NAME:ADDRESS of the services
}

// stay is what the command of a job's container does: nothing, until it is killed. As the first process it
// is the parent of what scripts leave behind, and reaps it; where another is the first, that does. Its name keeps it from signals.
const stay = `trap 'exit 0' TERM; { echo ` + engine.Waits + ` >/proc/$$/comm; } 2>/dev/null; while :; do sleep 1 & wait $!; done`

// starting is how long an engine may take to start a container. A start is not cut off by a
// cancel: nobody knows what a client has left that was ended in the middle.
var starting = time.Minute

// An engineError is what was wrong with the engine: no fault of the script.
type engineError struct{ err error }

func (e *engineError) Error() string { return e.err.Error() }

// Unwrap returns what was wrong.
func (e *engineError) Unwrap() error { return e.err }

func (c *container) open(ctx context.Context) error {
	if err := c.start(ctx); err != nil {
		return &engineError{err}
	}
	return nil
}

// start makes the network and starts the containers.
func (c *container) start(ctx context.Context) error {
	a := c.a
	async.OnExit(ctx, func(ctx context.Context, _ error) error {
		a.r.unswept.Add(1)
		if _, err := c.engine.Sweep(context.WithoutCancel(ctx), a.label()); err != nil {
			a.note("cirunner: %v", err)
			return nil
		}
		a.r.unswept.Add(-1)
		return nil
	})
	image, config, err := c.image("image", *a.job.Image, a.job.Variables)
	if err != nil {
		return err
	}
	steady := context.WithoutCancel(a.work)
	if err := c.network(steady); err != nil {
		return fmt.Errorf("cannot make the network of the job: %w", err)
	}
	if err := c.startServices(ctx); err != nil || a.work.Err() != nil {
		return a.because(err)
	}
	a.phase("container")
	if err := os.MkdirAll(a.scriptsDir(), 0o755); err != nil {
		return err
	}
	mounts, err := c.mounts()
	if err != nil {
		return err
	}
	c.job, err = c.launch(engine.Spec{
		Name: c.name("job"), Network: c.name("net"), Labels: a.labels(), Image: image.Name, Entrypoint: image.Entrypoint,
		Command: []string{"sh", "-c", stay}, User: image.User, Platform: image.Platform, Mounts: mounts, Hosts: c.hosts,
	})
	if err != nil {
		return fmt.Errorf("cannot start the container of the job: %w", err)
	}
	if user := cmp.Or(image.User, config.User); user != "" && user != "0" && user != "root" {
		c.share(steady)
	}
	return nil
}

// network makes the network of the job. If there is one, it is of a run that was killed and had this number, before its
// directory was removed: that goes, and what is in it.
func (c *container) network(ctx context.Context) error {
	err := c.engine.Network(ctx, c.name("net"), c.a.labels())
	if err == nil {
		return nil
	}
	if _, swept := c.engine.Sweep(ctx, c.a.label()); swept != nil {
		return err
	}
	return c.engine.Network(ctx, c.name("net"), c.a.labels())
}

// launch starts a container. Each has time of its own: the services before it may have been
// pulled for minutes.
func (c *container) launch(s engine.Spec) (*engine.Container, error) {
	steady, cancel := context.WithTimeout(context.WithoutCancel(c.a.work), starting)
	defer cancel()
	started, err := c.engine.Start(steady, s)
	if err != nil && steady.Err() != nil {
		c.a.r.cutOff.Store(true)
	}
	return started, err
}

// image expands an image and sees to it that the engine has it.
func (c *container) image(what string, image pipeline.Image, own []pipeline.Variable) (pipeline.Image, engine.ImageConfig, error) {
	a := c.a
	resolved, err := a.resolve(own, nil)
	if err != nil {
		return image, engine.ImageConfig{}, err
	}
	for _, text := range []*string{&image.Name, &image.User, &image.Platform} {
		if *text, err = vars.Expand(*text, resolved); err != nil {
			return image, engine.ImageConfig{}, err
		}
	}
	a.phase("image")
	var missing error
	if image.Pull != pipeline.PullAlways {
		missing = c.engine.HasImage(a.work, image.Name)
	}
	switch {
	case a.work.Err() != nil:
		return image, engine.ImageConfig{}, context.Cause(a.work)
	case missing != nil && image.Pull == pipeline.PullNever:
		return image, engine.ImageConfig{}, fmt.Errorf("%s: the engine does not have %s, or does not answer, and pull_policy is never: %w", what, image.Name, missing)
	case missing != nil || image.Pull == pipeline.PullAlways:
		a.note("cirunner: %s: pulling %s", what, image.Name)
		environ, err := a.environ(own, nil)
		if err != nil {
			return image, engine.ImageConfig{}, err
		}
		out, flush := a.masked(a.log, environ)
		err = c.engine.Pull(a.work, image.Name, image.Platform, out)
		_ = flush()
		if err != nil {
			return image, engine.ImageConfig{}, a.because(fmt.Errorf("%s: cannot pull %s: %w", what, image.Name, err))
		}
	}
	config, err := c.engine.Inspect(a.work, image.Name)
	if err != nil {
		err = a.because(fmt.Errorf("%s: cannot look at %s: %w", what, image.Name, err))
	}
	return image, config, err
}

// name is a name for the engine: no other job, attempt or project has it.
func (c *container) name(what string) string {
	id := sha256.Sum256([]byte(c.a.r.Work.Dir))
	return fmt.Sprintf("cirunner-%x-%s-%d-%s", id[:5], strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(c.a.slug())), c.a.number, what)
}

// mounts are the directories that the container sees: those of the job, and the objects
// that its repository has in common with that of the project.
func (c *container) mounts() ([]engine.Mount, error) {
	a := c.a
	mounts := []engine.Mount{{Path: a.dir}, {Path: a.scriptsDir(), ReadOnly: true}}
	for _, repository := range a.repositories() {
		alternates, _ := os.ReadFile(filepath.Join(repository, ".git", "objects", "info", "alternates"))
		for objects := range strings.Lines(string(alternates)) {
			objects = strings.TrimSpace(objects)
			if info, err := os.Stat(objects); err == nil && info.IsDir() && filepath.IsAbs(objects) {
				mounts = append(mounts, engine.Mount{Path: objects, ReadOnly: true})
			}
		}
	}
	for _, m := range mounts {
		if strings.ContainsAny(m.Path, ",\"") {
			return nil, fmt.Errorf("a container cannot have the directory %s: there is a comma or a quote in its path", m.Path)
		}
	}
	return mounts, nil
}

// shell runs a script in the container, by bash where the image has it and by sh otherwise.
func (c *container) shell(ctx context.Context, s shell, environ []string, out io.Writer) (proc.Result, error) {
	path := filepath.Join(c.a.scriptsDir(), s.name)
	if err := writeScript(path, 0o644, s.text); err != nil {
		return proc.Result{}, err
	}
	if !slices.ContainsFunc(environ, func(e string) bool { return strings.HasPrefix(e, "GIT_CONFIG_COUNT=") }) {
		// The files are of a user whom git in the container does not know.
		environ = append(environ, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
	}
	return c.job.Exec(ctx, engine.Script{
		Name: s.name, Path: path, Dir: c.a.dir, Variables: environ, Out: out,
		Grace: s.grace, Hurry: c.a.r.hard, Started: c.a.record,
	})
}

// settle lets this process read and remove what a user of the container has made.
func (c *container) settle(ctx context.Context) {
	if c.job != nil && os.Getuid() != 0 {
		c.share(ctx)
	}
}

// share lets every user write to the files of the job.
func (c *container) share(ctx context.Context) {
	if err := c.job.Share(ctx, c.a.dir); err != nil {
		c.a.note("cirunner: not all files of the job can be written to by everybody: %v", err)
	}
}
