//go:build unix

package runner

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/cirunner/internal/engine"
	"github.com/ambit-go/ambit/cirunner/internal/joblog"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
)

// answering is how long a service that is a container may take to answer.
const answering = 30 * time.Second

// startServices starts the services of the job, one after the other, each of which knows
// those before it, and waits until all of them answer.
func (c *container) startServices(ctx context.Context) error {
	return async.Scope(c.a.work, func(work context.Context) error {
		for i := range c.a.job.ImageServices {
			s := &c.a.job.ImageServices[i]
			running, ports, err := c.startService(ctx, i, s)
			if err != nil {
				return &serviceError{s.Aliases[0], err}
			}
			address, err := running.Address(work)
			if err != nil {
				return c.a.because(&serviceError{s.Aliases[0], err})
			}
			for _, alias := range s.Aliases {
				c.hosts = append(c.hosts, alias+":"+address)
			}
			async.Go(work, func(work context.Context) error {
				return answers(work, s.Aliases[0], running, address, ports)
			}, async.Name("start "+s.Aliases[0]))
		}
		return nil
	})
}

// startService starts a service, and follows what it says until the scope of ctx ends.
func (c *container) startService(ctx context.Context, i int, s *pipeline.ImageService) (*engine.Container, []int, error) {
	a := c.a
	image, config, err := c.image("service "+s.Aliases[0], s.Image, s.Variables)
	if err != nil {
		return nil, nil, err
	}
	environ, err := a.environ(s.Variables, nil)
	if err != nil {
		return nil, nil, err
	}
	a.phase("services")
	running, err := c.launch(engine.Spec{
		Name: c.name(fmt.Sprintf("service-%d", i+1)), Network: c.name("net"), Labels: a.labels(), Image: image.Name, Entrypoint: image.Entrypoint,
		Command: s.Command, User: image.User, Platform: image.Platform, Variables: environ, Hosts: slices.Clone(c.hosts),
	})
	if err != nil {
		return nil, nil, err
	}
	async.Go(ctx, func(ctx context.Context) error { return c.follow(ctx, i, s.Aliases[0], running, environ) },
		async.Daemon(), async.Name("service "+s.Aliases[0]))
	return running, portsOf(config.Ports, environ), nil
}

// portsOf are the ports at which a service has to answer: those of its image, or the one
// that a variable names.
func portsOf(ports []int, environ []string) []int {
	for _, e := range environ {
		if text, found := strings.CutPrefix(e, "HEALTHCHECK_TCP_PORT="); found {
			if port, err := strconv.Atoi(text); err == nil {
				return []int{port}
			}
		}
	}
	return ports
}

// follow writes what a service says to its log. The number of the service is in the name of that, since another may have
// its alias. If the service ends before it is told to, the job's work fails.
func (c *container) follow(ctx context.Context, i int, alias string, running *engine.Container, environ []string) error {
	a := c.a
	failed := func(err error) { a.fail(&serviceError{alias, err}) }
	file, err := a.openLog(a.path(fmt.Sprintf("%d-%s.log", i+1, slugOf(alias))))
	if err != nil {
		failed(err)
		return nil
	}
	log := joblog.New(file, a.r.LogLimit, a.say(alias))
	out, flush := a.masked(log, environ)
	err = running.Logs(ctx, out)
	if ctx.Err() == nil {
		lives, status, unknown := running.Running(ctx)
		switch {
		case ctx.Err() != nil:
		case unknown != nil:
			failed(unknown)
		case lives:
			failed(fmt.Errorf("the client that follows it has ended: %w", err))
		default:
			failed(fmt.Errorf("has ended: %s", status))
		}
	}
	_ = flush()
	if err := log.Close(); err != nil {
		failed(err)
	}
	return nil
}

// answers waits until a service takes connections at the first of its ports. One without
// ports is ready when it is started.
func answers(work context.Context, alias string, running *engine.Container, address string, ports []int) error {
	if len(ports) == 0 {
		return nil
	}
	_, err := async.Poll(work, async.Backoff(50*time.Millisecond, time.Second),
		func(ctx context.Context) (struct{}, bool, error) {
			return struct{}{}, running.Listens(ctx, address, ports[0]), nil
		}, async.Timeout(answering)).Await(work, 0)
	if err == nil || work.Err() != nil {
		return err
	}
	return &serviceError{alias, fmt.Errorf("does not answer at port %d within %v", ports[0], answering)}
}
