//go:build unix

package daemon

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/proc"
)

// A spec is what a container is created from: some fields of Docker's.
type spec struct {
	Cmd         []string
	Env         []string
	StopTimeout int // seconds between TERM and KILL
}

// A container is a command that runs once.
type container struct {
	spec   spec
	owner  context.Context // of the run
	exited *async.Future[int]
	exit   *async.Promise[int]
	left   *async.Future[struct{}] // by the connection that is attached
	leave  *async.Promise[struct{}]

	// What is written to input the command reads from stdin. It takes some
	// before the command has started, too.
	stdin, input *os.File

	mu        sync.Mutex
	began     bool
	group     int                     // 0 while nothing runs
	halt      context.CancelCauseFunc // nil until it has begun
	out, errs io.Writer               // of the connection that is attached
}

func newContainer(owner context.Context, spec spec) (*container, error) {
	c := &container{spec: spec, owner: owner, out: io.Discard, errs: io.Discard}
	var err error
	if c.stdin, c.input, err = os.Pipe(); err != nil {
		return nil, err
	}
	c.exited, c.exit = async.NewPromise[int](owner, async.Name("container"))
	c.left, c.leave = async.NewPromise[struct{}](owner, async.Name("attached"))
	return c, nil
}

// close closes the files of a container that has ended or will never run.
func (c *container) close() {
	_ = c.stdin.Close()
	_ = c.input.Close()
}

var errStopped = errors.New("stopped by a request")

// start runs the command, in the scope of the daemon.
func (c *container) start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.began {
		return refuse(http.StatusNotModified, "it was started before")
	}
	ctx, halt := context.WithCancelCause(c.owner)
	c.began, c.halt = true, halt
	async.Go(ctx, func(ctx context.Context) error {
		defer halt(nil)
		result, _ := proc.Run(ctx, proc.Command{ // how it ended is in the result
			Args: c.spec.Cmd, Env: append(os.Environ(), c.spec.Env...), Stdin: c.stdin,
			Stdout: c.stream(&c.out), Stderr: c.stream(&c.errs),
			Grace:   c.grace(),
			Started: func(pid int) { c.setGroup(pid) },
		})
		c.setGroup(0)
		c.close() // ends a feed that nobody reads
		c.exit.Resolve(result.Status())
		return nil
	}, async.Name("container"))
	return nil
}

func (c *container) grace() time.Duration {
	if c.spec.StopTimeout == 0 {
		return -1 // none
	}
	return time.Duration(c.spec.StopTimeout) * time.Second
}

func (c *container) setGroup(id int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.group = id
}

// stop asks the command to end, without waiting for that.
func (c *container) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.halt != nil {
		c.halt(errStopped)
	} else {
		c.began = true // it never will
		c.exit.Resolve(0)
	}
}

// kill is stop without a grace.
func (c *container) kill() {
	c.stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.group != 0 {
		_ = syscall.Kill(-c.group, syscall.SIGKILL) // it may have ended just now
	}
}

// stream returns a writer to one of the streams of whoever is attached when it
// is written to. That somebody hangs up is not the command's affair.
func (c *container) stream(to *io.Writer) io.Writer {
	return writerFunc(func(p []byte) (int, error) {
		c.mu.Lock()
		w := *to
		c.mu.Unlock()
		_, _ = w.Write(p)
		return len(p), nil
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
