// Package filestore is a taskqueue.Store in a file, for one machine: no server is
// needed. What was acknowledged is on the disk.
//
// One process has the file open. Others that open it use it through that process, by
// a socket beside the file (its name with .sock behind), which only the same user
// may use. When the process ends another takes over: the next call opens the file.
package filestore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ambit-go/ambit/internal/boltfile"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/remote"
)

func init() {
	taskqueue.Register("file", func(ctx context.Context, url string) (taskqueue.Store, error) {
		return open(ctx, strings.TrimPrefix(strings.TrimPrefix(url, "file:"), "//"))
	})
}

// Open opens the store in the file, which is made if there is none. It fails if the
// file is damaged, if it is one of another program, if a newer version wrote it, if it
// cannot be read and written, or if another process has it and cannot be reached. The
// error says what to do.
func Open(path string) (taskqueue.Store, error) { return open(context.Background(), path) }

func open(ctx context.Context, path string) (taskqueue.Store, error) {
	if path == "" {
		return nil, &taskqueue.InvalidError{What: "file", Why: "it has no name: write it as file:tasks.db"}
	}
	path, err := canonical(path)
	if err != nil {
		return nil, fmt.Errorf("taskqueue: %w", err)
	}
	s := &store{path: path, turn: make(chan struct{}, 1)}
	if _, err := s.current(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// canonical is the one path under which all processes know a file, whatever folder they
// are in, and whatever link they follow: the socket is beside it.
func canonical(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real, nil
	}
	if folder, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(folder, filepath.Base(path)), nil
	}
	return path, nil // opening it says what is wrong
}

// A store is the file, or the process that has it.
type store struct {
	path string
	turn chan struct{} // has one element while somebody uses what follows

	now     taskqueue.Store // nil: to be opened
	server  *remote.Server  // if we have the file
	closed  bool
	checked boltfile.Checked

	breaking sync.WaitGroup // calls of broken
}

// patience is how long a process that has the file may take to listen at its socket,
// or to close the file after it has stopped to.
const patience = 5 * time.Second

// current returns where the tasks are now.
func (s *store) current(ctx context.Context) (taskqueue.Store, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	for begin := time.Now(); ; {
		switch {
		case s.closed:
			return nil, taskqueue.ErrClosed
		case s.now != nil:
			return s.now, nil
		}
		err := s.open()
		if err == nil || !errors.Is(err, errTaken) || time.Since(begin) > patience {
			if err != nil {
				return nil, err
			}
			continue
		}
		timer := time.NewTimer(20 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		}
	}
}

func (s *store) socket() string { return s.path + ".sock" }

// open opens the file, or reaches the process that has it.
func (s *store) open() error {
	own, err := openFile(s.path, &s.checked, func(st taskqueue.Store) { s.breaking.Add(1); go s.broken(st) })
	switch {
	case err == nil:
		if s.server, err = remote.Listen(s.socket(), own); err != nil {
			return errors.Join(fmt.Errorf("taskqueue: other processes could not use %s: %w", s.path, err), own.Close())
		}
		s.now = own
		return nil
	case err != errTaken:
		return err
	}
	other, err := remote.Dial(s.socket())
	if err != nil {
		if !remote.Starting(err) {
			return fmt.Errorf("taskqueue: another process has %s, and its socket cannot be used: %w", s.path, err)
		}
		return fmt.Errorf("taskqueue: %s cannot be used: %w, and does not answer at its socket: %w", s.path, errTaken, err)
	}
	s.now = other
	return nil
}

// broken closes the file, which could not be written: what is in memory is ahead of
// it. The next call opens it again, here or in another process, and finds what was
// acknowledged. Those who have sent steps hear that the connection has ended.
func (s *store) broken(st taskqueue.Store) {
	defer s.breaking.Done()
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.now == st && !s.closed {
		_ = s.server.Close()
		_ = st.Close()
		s.now, s.server = nil, nil
	}
}

// failed notes that a call of store has failed. If it was another process that has
// ended, the next call opens the file again. It waits no longer than ctx for those who
// open it just now; then the next call fails at once, and notes it.
func (s *store) failed(ctx context.Context, st taskqueue.Store, err error) {
	if !errors.Is(err, remote.ErrGone) {
		return
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return
	}
	if s.now == st && !s.closed {
		s.now = nil
		_ = st.Close()
	}
}

// Close ends the use of the file. What other processes have sent is carried out.
func (s *store) Close() error {
	defer s.breaking.Wait()
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.closed {
		return nil
	}
	s.closed = true
	var err error
	if s.server != nil {
		err = s.server.Close()
	}
	if s.now != nil {
		err = errors.Join(err, s.now.Close())
	}
	return err
}
