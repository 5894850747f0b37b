package sqlitekv

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/kvqueue"
)

// Read reads ranges at one revision, and waits until all up to this one is on the disk, whoever has written it.
func (s *Store) Read(ctx context.Context, ranges ...kvqueue.Range) (results []kvqueue.Result, rev kvqueue.Rev, err error) {
	if results, rev, err = s.Glance(ctx, ranges...); err == nil {
		err = s.onDisk(ctx, rev)
	}
	return results, rev, err
}

// Glance is Read of what may not be on the disk yet.
func (s *Store) Glance(ctx context.Context, ranges ...kvqueue.Range) (results []kvqueue.Result, rev kvqueue.Rev, err error) {
	for {
		late := false
		err = s.read(ctx, func(l *link) error {
			results, late = results[:0], false
			if rev, late, err = s.revision(l); err != nil || late {
				return err
			}
			for _, r := range ranges {
				result, err := l.readRange(r)
				if err != nil {
					return err
				}
				results = append(results, result)
			}
			return nil
		})
		if !late || err != nil {
			return results, rev, err
		}
		// A session has ended, and its keys are there still: nobody is to see them.
		if err := s.endLate(ctx); err != nil {
			return nil, 0, err
		}
	}
}

// revision returns the last revision, and whether a session has ended whose keys are there still.
func (s *Store) revision(l *link) (rev kvqueue.Rev, late bool, err error) {
	const text = "SELECT rev, EXISTS (SELECT 1 FROM session WHERE until <= ?) FROM state"
	err = l.query(text, []any{s.now()}, func(row []driver.Value) bool {
		rev, late = kvqueue.Rev(row[0].(int64)), row[1] != int64(0)
		return false
	})
	return rev, late, err
}

// stop is the error of a call whose ctx has ended.
func stop(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != ctx.Err() {
		return fmt.Errorf("sqlitekv: %w: %w", ctx.Err(), cause)
	}
	return ctx.Err()
}

// stopped is the error of a call whose ctx has ended while it waited for the file, locked since then.
func (s *Store) stopped(ctx context.Context, since time.Time) error {
	if since.IsZero() {
		return stop(ctx)
	}
	return fmt.Errorf("%w: %w", s.lockedFor(since), stop(ctx))
}

func (s *Store) lockedFor(since time.Time) error {
	return fmt.Errorf("sqlitekv: %s is locked by another process, for %v by now", s.file.path, time.Since(since).Round(time.Millisecond))
}

// lockedSince is since when those of this process that write find the file locked; zero: they do not.
func (s *Store) lockedSince() (since time.Time) {
	if at := s.lockedAt.Load(); at != 0 {
		since = time.Unix(0, at)
	}
	return since
}

// A vain is the time for which one of those that write has found the file locked, until it gave up.
type vain struct{ since, until time.Time }

// lockedAfter is since when those that write find the file locked, or the last of them has until it gave up, after a
// time: then the next one has not found it free.
func (s *Store) lockedAfter(began time.Time) (since time.Time) {
	if since = s.lockedSince(); !since.IsZero() {
		return since
	}
	if v := s.vain.Load(); v != nil && v.until.After(began) {
		return v.since
	}
	return time.Time{}
}

// Waits returns an error that says for what calls that write wait now: another process has the file
// locked. It is nil if they do not. A queue tells it to its callers.
func (s *Store) Waits() error {
	if since := s.lockedSince(); !since.IsZero() {
		return s.lockedFor(since)
	}
	return nil
}

// readRange reads a range. The statement has no LIMIT: SQLite would prepare it anew for each number.
func (l *link) readRange(r kvqueue.Range) (result kvqueue.Result, err error) {
	columns, where, args := "key, rev", "key = ?", []any{r.Begin}
	if !r.KeysOnly {
		columns += ", value"
	}
	if r.End != nil {
		where, args = "key >= ? AND key < ?", append(args, r.End)
	}
	text := "SELECT " + columns + " FROM kv WHERE " + where + " ORDER BY key"
	err = l.query(text, args, func(row []driver.Value) bool {
		if r.Limit > 0 && len(result.Pairs) == r.Limit {
			result.More = true
			return false
		}
		p := kvqueue.Pair{Key: bytesOf(row[0]), Rev: kvqueue.Rev(row[1].(int64))}
		if !r.KeysOnly {
			p.Value = bytesOf(row[2])
		}
		result.Pairs = append(result.Pairs, p)
		return true
	})
	return result, err
}
