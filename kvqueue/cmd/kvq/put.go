package main

import (
	"bufio"
	"context"
	"flag"
	"io"

	"github.com/ambit-go/ambit/kvqueue"
)

// mostLines is how many lines are added at once.
const mostLines = 63

func putCommand(f *flag.FlagSet) func(context.Context, *env) error {
	whole := f.Bool("whole", false, "all of stdin is one item")
	id := f.String("id", "", "the id of the one item: a repeat adds nothing, and so may follow a put that has failed")
	group := f.String("group", "", "the items are of this `group`: one of it is taken at a time, in order")
	quiet := f.Bool("quiet", false, "do not say what was added")
	return func(ctx context.Context, e *env) error {
		if *whole && len(e.args) > 0 {
			return usagef("-whole is for stdin: leave the arguments out")
		}
		if *id != "" && !*whole && len(e.args) != 1 {
			return usagef("-id is of one item: give one value, or -whole")
		}
		return e.with(ctx, func(q *kvqueue.Queue) error {
			p := &putter{env: e, q: q, id: *id, group: *group}
			err := p.put(ctx, *whole)
			switch {
			case *quiet || p.added == 0 && !p.repeat:
			case p.repeat && !e.json:
				e.sayf("added none: the id is that of %v\n", p.first)
			case e.json:
				err = first(err, e.writeJSON(map[string]any{"items": p.added, "first": p.first.String(), "last": p.last.String()}))
			default:
				e.sayf("added %d, from %v to %v\n", p.added, p.first, p.last)
			}
			return err
		})
	}
}

// A putter adds items and counts them.
type putter struct {
	*env
	q           *kvqueue.Queue
	id          string // of the one item; empty: none
	repeat      bool   // an item had the id
	group       string // of all items; empty: none
	added       int
	first, last kvqueue.Key
}

func (p *putter) put(ctx context.Context, whole bool) error {
	switch {
	case whole:
		item, err := io.ReadAll(p.stdin)
		if err != nil {
			return err
		}
		return p.add(ctx, [][]byte{item})
	case len(p.args) == 0:
		return p.lines(ctx)
	}
	items := make([][]byte, len(p.args))
	for i, a := range p.args {
		items[i] = []byte(a)
	}
	return p.add(ctx, items)
}

func (p *putter) add(ctx context.Context, items [][]byte) error {
	switch {
	case p.id != "":
		return p.addOnce(ctx, items[0])
	case p.group != "":
		return p.addToGroup(ctx, items)
	}
	pos, err := p.q.Enqueue(ctx, items...)
	p.count(pos)
	return err
}

// addToGroup adds one item after another.
func (p *putter) addToGroup(ctx context.Context, items [][]byte) error {
	for _, item := range items {
		key, err := p.q.Add(ctx, item, kvqueue.Group(p.group))
		if err != nil {
			return err
		}
		p.count(kvqueue.Position{First: key, Last: key, Items: 1})
	}
	return nil
}

func (p *putter) count(pos kvqueue.Position) {
	if pos.Items > 0 {
		if p.added == 0 {
			p.first = pos.First
		}
		p.added, p.last = p.added+pos.Items, pos.Last
	}
}

func (p *putter) addOnce(ctx context.Context, item []byte) error {
	options := []kvqueue.AddOption{kvqueue.ID(p.id)}
	if p.group != "" {
		options = append(options, kvqueue.Group(p.group))
	}
	k, err := p.q.Add(ctx, item, options...)
	if err == nil {
		p.first, p.last, p.added = k, k, int(p.q.Stats().Enqueued)
		p.repeat = p.added == 0
	}
	return err
}

// lines adds the lines of stdin: those that are there, at once. A signal ends it, though
// stdin may not.
func (p *putter) lines(ctx context.Context) error {
	read := make(chan []byte, mostLines)
	failed := make(chan error, 1)
	go func() { // a read that waits for a terminal cannot be ended: it ends with the process
		in := bufio.NewReader(p.stdin)
		defer close(read)
		for {
			line, err := in.ReadBytes('\n')
			if n := len(line); n > 0 {
				if line[n-1] == '\n' {
					line = line[:n-1]
				}
				select {
				case read <- line:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				if err != io.EOF {
					failed <- err
				}
				return
			}
		}
	}()
	for {
		items, err := some(ctx, read)
		if err != nil {
			return err
		}
		if len(items) == 0 {
			select {
			case err := <-failed:
				return err
			default:
				return nil
			}
		}
		if err := p.add(ctx, items); err != nil {
			return err
		}
	}
}

// some waits for a line, and returns it with those that have come since; none: there are no
// more.
func some(ctx context.Context, read <-chan []byte) (items [][]byte, err error) {
	select {
	case line, ok := <-read:
		if !ok {
			return nil, nil
		}
		items = append(items, line)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	for len(items) < mostLines {
		select {
		case line, ok := <-read:
			if !ok {
				return items, nil
			}
			items = append(items, line)
		default:
			return items, nil
		}
	}
	return items, nil
}

// first returns the first of two errors.
func first(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
