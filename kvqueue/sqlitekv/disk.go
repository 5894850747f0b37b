package sqlitekv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/ambit-go/ambit/kvqueue"
)

// A disk knows up to which revision the file is on the disk, and waits for it. SQLite would wait while it has the file
// locked, and each process for the disk's answers to all others. So SQLite only writes to its log, which is the file with
// -wal behind the name, and this waits for the log when the file is free again: for all that is in it then, whoever has
// written it.
//
// So others see what is not on the disk yet. Nothing that rests on it leaves the file before it is: a transaction is
// behind it in the log, and [Store.Read] waits. A [Store.Glance] does not.
type disk struct {
	sync func(log *os.File) error // nil: nobody waits, see NoSync
	name string                   // of the log
	seen atomic.Int64             // the last revision that this process has seen
	has  atomic.Int64             // all up to this one is on the disk

	turn chan struct{} // has an element while somebody waits for the disk, or uses what is below
	log  *os.File      // nil: it was not needed yet
	why  error         // of the last wait: the log may not be on the disk
}

// knows reports whether all up to a revision is on the disk, or nobody waits for that.
func (d *disk) knows(rev kvqueue.Rev) bool { return d.sync == nil || d.has.Load() >= int64(rev) }

// reaches waits until all up to a revision that was seen in the file is on the disk, or ctx ends.
func (d *disk) reaches(ctx context.Context, rev kvqueue.Rev) error {
	if d.knows(rev) {
		return nil
	}
	for seen := d.seen.Load(); seen < int64(rev) && !d.seen.CompareAndSwap(seen, int64(rev)); {
		seen = d.seen.Load()
	}
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return stop(ctx)
	}
	if ctx.Done() == nil {
		return d.await(rev)
	}
	answer := make(chan error, 1)
	go func() { answer <- d.await(rev) }() // it has the turn, so there is one, and ends when the disk has answered
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return stop(ctx)
	}
}

// await waits for the disk, unless that is known to have a revision, or to have failed, and gives the turn back.
func (d *disk) await(rev kvqueue.Rev) error {
	defer func() { <-d.turn }()
	if d.why == nil && !d.knows(rev) { // else the one before has waited for it, too
		d.why = d.wait()
	}
	if d.knows(rev) {
		return nil
	}
	return d.why
}

// wait is called by the one that has the turn.
func (d *disk) wait() (err error) {
	seen := d.seen.Load()
	if d.log == nil { // SQLite has it by now, and keeps it as long as it has the file open
		if d.log, err = os.OpenFile(d.name, os.O_RDWR, 0); err != nil {
			return err
		}
	}
	if err = d.sync(d.log); err == nil {
		d.has.Store(seen)
	}
	return err
}

// mend writes all of the log again after a wait has failed: a system says once that it could not write something, and
// then it may take that for written. It is called with the file locked, so that the log does not change.
func (d *disk) mend() error {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	if d.log != nil {
		if err := rewrite(d.log); err != nil {
			d.why = err
			return err
		}
	}
	d.why = d.wait()
	return d.why
}

// rewrite writes a file over itself.
func rewrite(f *os.File) error {
	some := make([]byte, 1<<20)
	for at := int64(0); ; {
		n, err := f.ReadAt(some, at)
		if n > 0 {
			if _, err := f.WriteAt(some[:n], at); err != nil {
				return err
			}
		}
		switch at += int64(n); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

func (d *disk) close() error {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	if d.log == nil {
		return nil
	}
	return d.log.Close()
}

// settle is reaches for the one that has written, for itself and for others: it does not end with a ctx. If the disk fails it
// tries once more to bring all there, and so does whoever writes next.
func (s *Store) settle(rev kvqueue.Rev) error {
	d := &s.file.disk
	failed := d.reaches(context.Background(), rev)
	if failed == nil {
		return nil
	}
	err := s.file.writer.within("BEGIN IMMEDIATE", d.mend)
	if err == nil {
		return nil
	}
	const text = "%w: sqlitekv: %s: the disk may not have what was written last, and each call tries to bring it there: %w"
	return fmt.Errorf(text, kvqueue.ErrUnknown, s.file.path, errors.Join(failed, err))
}

// onDisk is reaches for one that has read.
func (s *Store) onDisk(ctx context.Context, rev kvqueue.Rev) error {
	failed := s.file.disk.reaches(ctx, rev)
	if failed == nil || ctx.Err() == nil && s.endLate(ctx) == nil { // whoever writes tries to bring all to the disk
		return nil
	}
	if ctx.Err() != nil {
		return stop(ctx)
	}
	return fmt.Errorf("sqlitekv: %s: the disk may not have what was read: %w", s.file.path, failed)
}
