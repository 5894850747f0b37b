//go:build linux

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"path/filepath"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/clock"
	"github.com/ambit-go/ambit/taskqueue/sqlstore"
)

// A sqliteWorld is a SQLite file that processes share, and that none of them owns: the end of
// a process is no excuse for what happens to the tasks of others.
type sqliteWorld struct {
	*world
	path string
	disk *disk
}

func newSQLiteWorld(_ context.Context, processes int, seed uint64, dir string) (*world, error) {
	w, err := newWorld("sqlite", seed, dir)
	if err != nil {
		return nil, err
	}
	s := &sqliteWorld{world: w}
	if s.disk, err = newDisk(filepath.Join(w.dir, "disk")); err != nil {
		return nil, err
	}
	s.path = filepath.Join(s.disk.dir, "tasks.db")
	w.fleet = newFleet(w.journals(), "sqlite:"+s.path, processes, seed, true)
	w.open = func(ctx context.Context) (taskqueue.Store, error) { return sqlstore.OpenFile(ctx, s.path) }
	// The clock of the store is that of the machine, which all processes have.
	w.advance = func(d time.Duration) error {
		clock.Set(d)
		w.fleet.setClocks(int(d / time.Second))
		return nil
	}
	w.left = s.left
	w.mend = func(context.Context) error { return s.disk.empty() }
	w.close = s.disk.close
	deck := []fault{{"kill -9 of all processes", func(context.Context, *mathrand.Rand) (bool, error) {
		if err := w.fleet.killAll(); err != nil {
			return false, err
		}
		return true, w.fleet.fill()
	}}}
	if s.disk.err == nil {
		deck = append(deck, fault{"a full disk", s.full})
	} else {
		w.missing = append(w.missing, fmt.Sprintf("a full disk: mount: %v", s.disk.err))
	}
	ofProcesses := w.faultsOfProcesses()
	w.decks = [][]fault{ofProcesses[:len(ofProcesses)-1], deck} // no process has a clock of its own
	return w, nil
}

// full fills the disk. Nothing can be written, so no lease can be extended: that is a gap.
func (s *sqliteWorld) full(ctx context.Context, rng *mathrand.Rand) (bool, error) {
	err := s.disk.fill()
	rest(ctx, ms(rng, 200, 1200))
	err = errors.Join(err, s.disk.empty())
	return err == nil, err
}

// left returns the tables that hold something of a task, and what is wrong with the file.
func (s *sqliteWorld) left(ctx context.Context) (left []string, err error) {
	db, err := sql.Open("sqlite", s.path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var state string
	if err := db.QueryRowContext(ctx, "PRAGMA integrity_check").Scan(&state); err != nil || state != "ok" {
		return []string{"a fault of the file: " + state}, err
	}
	for _, table := range []string{"task", "payload", "unique", "edge", "release"} {
		var n int
		if err := db.QueryRowContext(ctx, "SELECT count(*) FROM tq_"+table).Scan(&n); err != nil {
			return nil, err
		}
		if n > 0 {
			left = append(left, fmt.Sprintf("%d rows of the table tq_%s", n, table))
		}
	}
	return left, nil
}
