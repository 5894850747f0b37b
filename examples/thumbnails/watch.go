package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"

	"github.com/ambit-go/ambit/async"
)

// This file finds out what has changed. Events tell at once, but not everything:
// they overflow, they miss what is in a folder before that is watched, and some
// file systems have none. A look at the whole folder misses nothing, but is late
// and costs more. So there are both, and each may be wrong: all that they do is
// to add names to the queue, and once too often does no harm.

// lookOnce adds what needs a thumbnail now; the queue is closed when that is
// worked off.
func (s *studio) lookOnce(ctx context.Context) error {
	if err := s.look(ctx, nil); err != nil {
		return err
	}
	s.looking.Store(false)
	s.closeIfIdle()
	return nil
}

// watch adds what changes, until ctx ends or the folder is gone.
func (s *studio) watch(ctx context.Context) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		s.book.trouble("no events: %v; changes are found each %v", err, s.cfg.rescan)
	}
	return async.Scope(ctx, func(ctx context.Context) error {
		if w != nil {
			async.OnExit(ctx, func(context.Context, error) error { return w.Close() })
			async.Go(ctx, func(ctx context.Context) error { return s.follow(ctx, w) }, async.Name("events"))
		}
		look := func(ctx context.Context) error { return s.look(ctx, w) }
		_, err := async.Repeat(ctx, async.Every(s.cfg.rescan), look, async.Name("rescan")).Await(ctx, 0)
		if ended := (*async.PollError[struct{}])(nil); errors.As(err, &ended) {
			return ended.Err // how often it went well is no news
		}
		return err
	})
}

// follow acts on events.
func (s *studio) follow(ctx context.Context, w *fsnotify.Watcher) error {
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case e := <-w.Events:
			err = s.event(ctx, w, e)
		case lost := <-w.Errors:
			s.book.trouble("events were lost (%v): looking at everything", lost)
			err = s.look(ctx, w)
		}
		if err != nil {
			return err
		}
	}
}

// event acts on one event. What it says has happened may be over by now, so it
// is only a reason to look.
func (s *studio) event(ctx context.Context, w *fsnotify.Watcher, e fsnotify.Event) error {
	name, ok := below(s.cfg.folder, e.Name)
	if !ok || s.hidden(name) {
		return nil
	}
	info, err := s.folder.Lstat(filepath.FromSlash(name))
	switch {
	case err == nil && info.IsDir() && e.Has(fsnotify.Create):
		return s.lookAt(ctx, w, name)
	case err == nil && info.IsDir():
	case isPicture(name) && e.Op == fsnotify.Chmod:
		// Backups and searches cause many of these, but it may have become
		// readable, or have been given another time.
		if err == nil {
			s.book.forgive(name)
			s.consider(name, info)
		}
	case isPicture(name):
		s.add(name)
	case errors.Is(err, fs.ErrNotExist) && fs.ValidPath(name): // it may have been a folder
		return s.lookForGone(ctx, name)
	}
	return nil
}

// add adds a picture that has changed. One that waits for another attempt waits no
// longer, and has all its attempts again.
func (s *studio) add(name string) {
	if s.book.forgive(name) {
		s.queue.Remove(name)
	}
	s.queue.AddAfter(s.cfg.settle, name)
}

// look considers all pictures, those that are gone included, and has w, which may
// be nil, watch all folders.
func (s *studio) look(ctx context.Context, w *fsnotify.Watcher) error {
	if err := s.lookAt(ctx, w, "."); err != nil {
		return err
	}
	if err := s.lookForGone(ctx, "."); err != nil {
		return err
	}
	s.looked.Store(true)
	return nil
}

// lookAt considers the pictures in a folder, and those in it. Each is watched
// before it is read, so nothing that is put there falls between.
func (s *studio) lookAt(ctx context.Context, w *fsnotify.Watcher, folder string) error {
	if err := s.present(); err != nil {
		return err
	}
	found := make(gaps)
	err := fs.WalkDir(s.folder.FS(), folder, func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, fs.ErrNotExist): // gone meanwhile
		case err != nil && name == ".":
			return err
		case err != nil:
			found.add(unread, name, err)
		case d.IsDir() && s.hidden(name):
			return fs.SkipDir
		case d.IsDir() && !fs.ValidPath(name):
			found.add(unread, name, errors.New("its name is no UTF-8"))
			return fs.SkipDir
		case d.IsDir():
			found.add(unwatched, name, s.follows(w, name))
		case d.Type().IsRegular() && isPicture(name):
			info, err := d.Info()
			found.add(unread, name, err)
			if err == nil {
				s.seen.Store(true)
				s.consider(name, info)
			}
		}
		return nil
	})
	s.book.notLookedAt(found, func(g gap) bool {
		return g.kind != unreadThumbnails && (folder == "." || g.name == folder || strings.HasPrefix(g.name, folder+"/"))
	})
	return err
}

// follows has w tell what happens in a folder.
func (s *studio) follows(w *fsnotify.Watcher, folder string) error {
	if w == nil {
		return nil
	}
	return w.Add(filepath.Join(s.cfg.folder, filepath.FromSlash(folder)))
}

// consider adds a picture if there is no thumbnail of it as it is, nor one in the
// making, and it was not given up as it is.
func (s *studio) consider(name string, info os.FileInfo) {
	changed := info.ModTime()
	if !s.book.knows(name, changed) && !s.gallery.has(name, changed) { // in this order: a job ends the other way round
		s.queue.Add(name)
	}
}

// lookForGone adds the pictures in a folder that there is a thumbnail of, and
// nothing else. It looks no further: temporary files of others may come and go by
// the hundreds, and each may have been a folder.
func (s *studio) lookForGone(ctx context.Context, folder string) error {
	if err := errors.Join(s.present(), s.gallery.present()); err != nil {
		return err
	}
	if !s.seen.Load() {
		return nil // rather a disk that is not there yet than pictures that are all gone
	}
	found := make(gaps)
	failed := func(name string, err error) { found.add(unreadThumbnails, name, err) }
	err := s.gallery.pictures(ctx, folder, failed, func(name string) {
		if _, err := s.folder.Lstat(filepath.FromSlash(name)); errors.Is(err, fs.ErrNotExist) {
			s.queue.Add(name)
		}
	})
	s.book.notLookedAt(found, func(g gap) bool { return g.kind == unreadThumbnails && folder == "." })
	return err
}

// hidden reports whether what is there is not to be looked at: in a folder whose
// name begins with a dot, or in that of the thumbnails.
func (s *studio) hidden(name string) bool {
	if out, inside := below(s.cfg.folder, s.cfg.out); inside && (name == out || strings.HasPrefix(name, out+"/")) {
		return true
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > 1 && part[0] == '.' {
			return true
		}
	}
	return false
}
