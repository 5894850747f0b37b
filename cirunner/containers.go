//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/board"
	"github.com/ambit-go/ambit/cirunner/internal/engine"
	"github.com/ambit-go/ambit/cirunner/internal/exit"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/workdir"
)

// containers are what the flags say about containers.
type containers struct {
	host   bool
	client string
	run    string
}

func (c *containers) define(flags *flag.FlagSet) {
	flags.BoolVar(&c.host, "host", false, "run jobs with an image on this machine, without a container and without services that are images")
	flags.StringVar(&c.client, "engine", "", "the `command` line of the container engine, with its global flags (default docker or podman, whichever answers)")
	flags.StringVar(&c.run, "engine-run", "", "more `flags` of the engine for each container")
}

// engine returns the engine for the jobs that have an image; nil if none has one, or -host
// is given. Without an engine they are refused: their scripts are not for this machine.
func (c *containers) engine(ctx context.Context, p *pipeline.Pipeline) (*engine.Engine, error) {
	n, first := 0, ""
	for _, j := range p.Jobs {
		if j.Image == nil {
			continue
		}
		if n == 0 {
			first = fmt.Sprintf("%q runs in %s", j.Name, j.Image.Name)
		}
		n++
	}
	if n == 0 {
		return nil, nil
	}
	e, err := engine.Find(ctx, strings.Fields(c.client), strings.Fields(c.run))
	if errors.Is(err, engine.ErrNone) {
		return nil, exit.Usagef("jobs with an image need a container engine (%s; %d in all): start docker or podman, say with -engine how it is called, "+
			"or run them on this machine with -host: %w", first, n, err)
	}
	return e, err
}

// findEngine finds the engine of a child pipeline that a job has made, if the run has none so far.
func (s *session) findEngine(ctx context.Context, child *pipeline.Pipeline) (*engine.Engine, error) {
	e, err := s.o.choice.containers.engine(ctx, child)
	if err != nil {
		return nil, err
	}
	s.engine = e
	return e, s.recordEngine()
}

// recordEngine writes down how the next run finds the containers of this one.
func (s *session) recordEngine() error {
	if s.engine == nil {
		return nil
	}
	return s.work.RecordEngine(s.engine.Record())
}

// sweep removes what jobs of this run could not remove from the engine. Its error says that something is left, or may be.
func (s *session) sweep(ctx context.Context) error {
	if s.engine == nil || s.runner == nil || !s.runner.Unswept() {
		return nil
	}
	_, err := s.engine.Sweep(context.WithoutCancel(ctx), engine.RunLabel(s.work.Dir))
	if err == nil && s.runner.CutOff() {
		err = errors.New("a start of a container was cut off, and the engine may come to it yet")
	}
	return err
}

// sweepStale removes the containers that an earlier run has left. It reports whether none is left.
func sweepStale(ctx context.Context, b *board.Board, old workdir.Stale) bool {
	e := engine.Recorded(old.Engine())
	if e == nil {
		return true
	}
	n, err := e.Sweep(ctx, engine.RunLabel(old.Dir))
	if err != nil {
		b.Notice(fmt.Sprintf("run %d: %v; the next run tries again", old.ID, err))
		return false
	}
	if n > 0 {
		b.Notice(fmt.Sprintf("run %d: its containers are removed, %d of them", old.ID, n))
	}
	return true
}
