// Package top shows a store on a terminal, and renews the picture.
//
// top.go is the loop, model.go what is shown and what keys do to it, frame.go the
// picture, table.go its columns, terminal.go the terminal, keys.go what is typed.
package top

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/look"
)

// A Config says what is shown and where.
type Config struct {
	Store  taskqueue.Store
	Name   string   // of the store; everybody may see it
	Queues []string // empty: all
	Every  time.Duration
	Once   bool // print the picture once, as if there were no terminal
	In     *os.File
	Out    *os.File
	Env    func(string) string
}

// Run shows the store until ctx is done or somebody ends it. Without a terminal it
// writes one picture as text. The terminal is left as it was, also after a panic, a
// signal that ends the process, and while the process is stopped.
func Run(ctx context.Context, c Config) error {
	l := look.Alone(c.Store, c.Queues...)
	if c.Once || !canDraw(c.In, c.Out, c.Env) {
		return once(ctx, c, l)
	}
	t := &terminal{in: c.In, out: c.Out}
	if err := t.enter(); err != nil {
		return err
	}
	defer t.leave()
	return async.Scope(ctx, func(ctx context.Context) error {
		return (&loop{c: c, t: t, m: newModel(c, true)}).run(ctx, l)
	}, async.Name("top"))
}

// Pictures returns what a picture is made of, when there are rates: two looks, a second
// apart.
func Pictures(ctx context.Context, l *look.Looker) (*look.Snapshot, error) {
	if _, err := l.Look(ctx); err != nil {
		return nil, err
	}
	if err := async.Sleep(ctx, time.Second); err != nil {
		return nil, err
	}
	return l.Look(ctx)
}

// once writes a picture as text. It has no end on the right or below.
func once(ctx context.Context, c Config, l *look.Looker) error {
	s, err := Pictures(ctx, l)
	if err != nil {
		return err
	}
	m := newModel(c, false)
	m.take(s, nil)
	_, err = fmt.Fprintln(c.Out, strings.Join(m.text(), "\n"))
	return err
}

// A loop waits for what happens, and draws.
type loop struct {
	c     Config
	t     *terminal
	m     *model
	drawn string
}

// A looked is what a look has brought.
type looked struct {
	s   *look.Snapshot
	err error
}

func (l *loop) run(ctx context.Context, looker *look.Looker) error {
	defer l.t.leave() // at once: what was begun may need a moment to end
	looks, notes := make(chan looked), make(chan noted)
	async.Go(ctx, func(ctx context.Context) error {
		for {
			s, err := looker.Look(ctx)
			select {
			case looks <- looked{s, err}:
			case <-ctx.Done():
				return nil
			}
			if async.Sleep(ctx, l.c.Every) != nil {
				return nil
			}
		}
	}, async.Daemon(), async.Name("look"))
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, watched...)
	defer signal.Stop(signals)
	keys := l.t.keys()
	for {
		if err := l.draw(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case got := <-looks:
			l.m.take(got.s, got.err)
		case n := <-notes:
			if l.m.note = n.text; n.done {
				l.m.changed[n.queue] = change{n.paused, time.Now()}
			}
		case sig := <-signals:
			if err := l.signal(sig); err != nil {
				return err
			}
		case k, ok := <-keys:
			if !ok {
				return nil // the terminal is gone
			}
			switch do := l.m.key(k); do.what {
			case quit:
				return nil
			case suspended:
				l.stop()
			case setPaused:
				l.pause(ctx, do, notes)
			}
		}
	}
}

// draw draws the picture if it has changed, in one write.
func (l *loop) draw() error {
	l.m.width, l.m.height = l.t.size()
	var b strings.Builder
	b.WriteString("\x1b[H")
	for i, line := range l.m.frame() {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString("\x1b[0m" + line + "\x1b[0m\x1b[K")
	}
	b.WriteString("\x1b[J")
	if b.String() == l.drawn {
		return nil
	}
	l.drawn = b.String()
	_, err := l.t.out.WriteString(l.drawn)
	return err
}

// signal does what a signal says.
func (l *loop) signal(sig os.Signal) error {
	switch kindOf(sig) {
	case stops:
		l.stop()
	case goesOn:
		l.drawn = ""
		return l.t.enter() // a shell may have changed the terminal meanwhile
	case ends:
		l.t.leave()
		die(sig)
	}
	return nil // another size: the next picture has it
}

// stop gives the terminal back, and stops the process, until the shell has it go on.
// Where no shell could, the system does not stop it.
func (l *loop) stop() {
	l.t.leave()
	stopSelf()
	l.drawn = ""
	_ = l.t.enter() // it fails where the terminal is gone, and then reading it fails, too
}

// A noted is what has become of an action.
type noted struct {
	action
	done bool
	text string
}

// pause pauses or resumes a queue. The keys work meanwhile.
func (l *loop) pause(ctx context.Context, do action, notes chan<- noted) {
	async.Go(ctx, func(ctx context.Context) error {
		err := l.c.Store.Configure(ctx, do.queue, func(s *taskqueue.Settings) { s.Paused = do.paused })
		n := noted{action: do, done: err == nil, text: "queue " + do.queue + " goes on"}
		switch {
		case err != nil:
			n.text = "queue " + do.queue + " could not be changed: " + err.Error()
		case do.paused:
			n.text = "queue " + do.queue + " is paused: what runs goes on, nothing else is started"
		}
		select {
		case notes <- n:
		case <-ctx.Done():
		}
		return nil
	}, async.Daemon())
}
