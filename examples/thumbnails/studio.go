package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"io/fs"
	"os"
	"sync/atomic"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/jobqueue"
)

// A studio makes thumbnails. Its jobs are names of pictures, not changes: a job
// is to make the thumbnail agree with the picture as it is by then, gone
// included. So it does not matter how many changes one job stands for, nor how
// often it is done.
type studio struct {
	cfg     config
	folder  *os.Root // of the pictures
	gallery *gallery
	queue   *jobqueue.Queue[string, string]
	book    *book
	make    func(ctx context.Context, name string) error // does a job
	load    func(ctx context.Context, name string) (image.Image, error)
	looking atomic.Bool // more jobs may come
	looked  atomic.Bool // at the whole folder
	seen    atomic.Bool // a picture
}

// open opens the folders.
func open(cfg config, std cli.Streams) (*studio, error) {
	folder, err := os.OpenRoot(cfg.folder)
	if err != nil {
		return nil, fmt.Errorf("cannot watch: %w", err)
	}
	gallery, err := openGallery(cfg.out, cfg.folder)
	if err != nil {
		_ = folder.Close()
		return nil, err
	}
	s := newStudio(cfg, std)
	s.folder, s.gallery, s.make, s.load = folder, gallery, s.thumbnail, s.read
	return s, nil
}

// newStudio returns one without folders.
//
// A picture that changes while its thumbnail is made must be made again: that is
// RunAgain. One that changes while it is queued is queued already, and while it
// waits for another attempt, too.
func newStudio(cfg config, std cli.Streams) *studio {
	s := &studio{cfg: cfg, book: newBook(cfg, std)}
	s.looking.Store(true)
	s.queue = jobqueue.New[string](
		jobqueue.WhileRunning(jobqueue.RunAgain),
		jobqueue.RetryDelay(cfg.retry()),
		jobqueue.MaxAttempts[string](cfg.attempts, nil), // the book is told by Observe
		jobqueue.Observe(s.observe),
	)
	return s
}

func (s *studio) close() {
	s.gallery.close()
	_ = s.folder.Close()
}

// run has the consumers work, and feed put jobs into the queue, until that is
// closed, feed fails, or a signal comes. All of it has ended when run returns,
// and what was not finished is in the queue.
func (s *studio) run(ctx context.Context, feed func(ctx context.Context) error) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		cli.FailOnSignal(ctx)
		async.Go(ctx, s.progress, async.Daemon(), async.Name("progress"))
		async.Go(ctx, feed, async.Daemon(), async.Name("feed"))
		return s.queue.Consume(ctx, s.cfg.workers, 1, s.do)
	}, async.Name("thumbnails"))
}

// do does one job. It is a task of its own so that a decoder that panics over a
// picture costs that picture an attempt rather than everybody the program, and
// for its limit of time. What is done is settled at once, by the task itself: a
// signal that comes just now would have the scope of the job end as stopped, and
// the picture listed as unfinished.
func (s *studio) do(ctx context.Context, names []string) error {
	_, err := async.Start(ctx, func(ctx context.Context) error {
		err := s.make(ctx, names[0])
		if err == nil {
			s.queue.Ack(ctx, names...)
		}
		return err
	}, async.Name(shown(names[0]))).Await(ctx, s.cfg.limit)
	return err
}

// thumbnail makes the thumbnail of a picture agree with it.
func (s *studio) thumbnail(ctx context.Context, name string) error {
	info, err := s.folder.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !info.Mode().IsRegular():
		return s.gone(name)
	case err != nil:
		return cause(err)
	}
	s.seen.Store(true)
	s.book.begin(name, info.ModTime())
	img, err := s.load(ctx, name)
	if s.changed(name, info) {
		// What was read is neither the old nor the new. That is not its fault.
		s.queue.AddAfter(s.cfg.settle, name)
		return nil
	}
	if err != nil {
		return cause(err)
	}
	if err := s.gallery.put(name, info.ModTime(), img); err != nil {
		return cmp.Or(s.gallery.present(), cause(err))
	}
	s.book.made(name, img.Bounds().Size())
	return nil
}

func (s *studio) read(ctx context.Context, name string) (image.Image, error) {
	file, err := s.folder.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return shrink(ctx, file, s.cfg.pixels*million, s.cfg.size)
}

// changed reports whether a picture is no longer the file that it was.
func (s *studio) changed(name string, was fs.FileInfo) bool {
	is, err := s.folder.Lstat(name)
	return err != nil || !os.SameFile(was, is) || !was.ModTime().Equal(is.ModTime()) || was.Size() != is.Size()
}

// gone removes the thumbnail of a picture that is no more.
func (s *studio) gone(name string) error {
	if err := s.present(); err != nil {
		return err
	}
	removed, err := s.gallery.remove(name)
	if removed {
		s.book.removed(name)
	}
	return cause(err)
}

// present returns an error if the watched folder is not there any more: a disk
// that was taken away has not lost its pictures.
func (s *studio) present() error {
	if !inPlace(s.folder) {
		return fmt.Errorf("the folder %s is gone, or another is in its place", s.cfg.folder)
	}
	return nil
}

// observe is told what becomes of every job.
func (s *studio) observe(e jobqueue.Event[string]) {
	s.book.observe(e)
	if e.Kind == jobqueue.Done || e.Kind == jobqueue.Dead {
		s.closeIfIdle()
	}
}

// closeIfIdle closes the queue when nothing is in it and nothing will come. What
// waits for another attempt is in it: that is why this is not Drain, which does
// not wait so long.
func (s *studio) closeIfIdle() {
	if s.looking.Load() { // asked first: what was added before is counted below
		return
	}
	if queued, inProgress := s.queue.Len(); queued+inProgress == 0 {
		s.queue.Close()
	}
}

// cause returns an error about a file without the file's name, which is told
// with it anyhow.
func cause(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}
