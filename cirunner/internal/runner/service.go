//go:build unix

package runner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/cirunner/internal/joblog"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/vars"
)

// A serviceError is what is wrong with a service.
type serviceError struct {
	name string
	err  error
}

func (e *serviceError) Error() string { return fmt.Sprintf("service %s: %v", e.name, e.err) }

// Unwrap returns what is wrong.
func (e *serviceError) Unwrap() error { return e.err }

// startServices starts the job's services and waits until all of them are ready.
// They belong to the scope of ctx, as daemons: they are stopped when the job has
// done everything else. A service that fails stops the job's work.
func (a *attempt) startServices(ctx context.Context) error {
	if len(a.job.Services) == 0 {
		return nil
	}
	a.phase("services")
	if err := a.takePorts(ctx); err != nil {
		return err
	}
	return async.Scope(a.work, func(work context.Context) error {
		for i := range a.job.Services {
			s := &service{a: a, Service: &a.job.Services[i]}
			async.Go(work, func(work context.Context) error { return s.start(ctx, work) }, async.Name("start "+s.Name))
		}
		return nil
	})
}

// takePorts waits until no other job has a service with the same address. The
// addresses are taken in one order by all, so that jobs do not wait in a circle.
func (a *attempt) takePorts(ctx context.Context) error {
	var addresses []string
	for _, s := range a.job.Services {
		if s.Address != "" {
			address, err := a.address(&s)
			if err != nil {
				return err
			}
			addresses = append(addresses, address)
		}
	}
	slices.Sort(addresses)
	for _, address := range slices.Compact(addresses) {
		port := a.r.port(address)
		if err := port.Acquire(a.work, 1); err != nil {
			return err
		}
		async.OnExit(ctx, func(context.Context, error) error { port.Release(1); return nil })
	}
	return nil
}

func (r *Runner) port(address string) *semaphore.Weighted {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ports[address] == nil {
		r.ports[address] = semaphore.NewWeighted(1)
	}
	return r.ports[address]
}

// address is where a service answers, with its variables replaced.
func (a *attempt) address(s *pipeline.Service) (string, error) {
	resolved, err := a.resolve(s.Variables, nil)
	if err != nil {
		return "", err
	}
	return vars.Expand(s.Address, resolved)
}

// A service runs beside a job.
type service struct {
	a *attempt
	*pipeline.Service
}

// start starts the service in ctx and returns when it is ready. It is not if
// work ends before, which a service that ends sees to.
func (s *service) start(ctx, work context.Context) error {
	address, err := s.a.address(s.Service)
	if err != nil {
		return s.failed(err)
	}
	var silent error
	if address != "" {
		if silent = dial(work, address); silent == nil {
			return s.failed(fmt.Errorf("%s is in use by somebody else", address))
		}
	}
	async.Go(ctx, s.run, async.Daemon(), async.Name("service "+s.Name))
	if address != "" {
		if err := s.answers(work, address, silent); err != nil {
			return err
		}
	}
	if s.Health.Interval > 0 {
		async.Go(ctx, func(ctx context.Context) error { s.watch(ctx, address); return nil },
			async.Daemon(), async.Name("health of "+s.Name))
	}
	return nil
}

// run runs the service. If it ends before it is told to, the job's work fails.
func (s *service) run(ctx context.Context) error {
	file, err := s.a.openLog(s.a.path(s.Name + ".log"))
	if err != nil {
		s.a.fail(s.failed(err))
		return nil
	}
	log := joblog.New(file, s.a.r.LogLimit, s.a.say(s.Name))
	result, err := s.a.shell(ctx, shell{
		name: "service-" + s.Name, text: serviceText(s.Command), variables: s.Variables,
		out: log, grace: s.a.grace(),
	})
	if err == nil {
		err = errors.New("exit status 0")
	}
	if result.Cause == nil {
		s.a.fail(s.failed(fmt.Errorf("has ended: %w", err)))
	}
	if err := log.Close(); err != nil {
		s.a.fail(s.failed(err))
	}
	return nil
}

// answers waits until the service accepts connections. silent is why it has not before it was started.
func (s *service) answers(work context.Context, address string, silent error) error {
	_, err := async.Poll(work, async.Backoff(10*time.Millisecond, 500*time.Millisecond),
		func(ctx context.Context) (struct{}, bool, error) {
			err := dial(ctx, address)
			if err != nil {
				return struct{}{}, false, async.Again(err)
			}
			return struct{}{}, true, nil
		}, async.Timeout(s.Timeout)).Await(work, 0)
	if err == nil || work.Err() != nil {
		return err
	}
	var poll *async.PollError[struct{}]
	if errors.As(err, &poll) && poll.Err != nil {
		silent = poll.Err // else there was no time to ask
	}
	return s.failed(fmt.Errorf("does not answer within %v: %w", s.Timeout, silent))
}

// watch looks after the health of the service until it is bad, or ctx ends.
func (s *service) watch(ctx context.Context, address string) {
	_, err := async.Repeat(ctx, async.Every(s.Health.Interval), func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, s.Health.Timeout)
		defer cancel()
		return s.healthy(ctx, address)
	}, async.AfterInterval(), async.Tolerate(s.Health.Retries)).Wait(ctx)
	if err != nil && ctx.Err() == nil {
		var poll *async.PollError[struct{}]
		if errors.As(err, &poll) && poll.Err != nil {
			err = poll.Err
		}
		s.a.fail(s.failed(fmt.Errorf("is ill: %w", err)))
	}
}

func (s *service) healthy(ctx context.Context, address string) error {
	if s.Health.Command == "" {
		return dial(ctx, address)
	}
	_, err := s.a.shell(ctx, shell{
		name: "health-" + s.Name, text: serviceText(s.Health.Command), variables: s.Variables,
		grace: -1, // there is nothing it has to tidy up
	})
	return err
}

func (s *service) failed(err error) error { return &serviceError{s.Name, err} }

// dial connects to an address, for at most a second.
func dial(ctx context.Context, address string) error {
	d := net.Dialer{Timeout: time.Second}
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}
