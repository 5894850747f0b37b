package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/relational"
)

// clockTable says of each start of the machine what time it was by this store. Its processes
// count from then on by the clock that they share and that nobody sets.
const clockTable = "CREATE TABLE IF NOT EXISTS lk_clock (boot BLOB NOT NULL PRIMARY KEY, epoch_us INTEGER NOT NULL)"

// anchor is the time when the machine was started: by the clock of the wall, but never so that
// a token was given in the future. A clock that is set right later changes nothing before the
// next start.
const anchor = `INSERT INTO lk_clock (boot, epoch_us) SELECT ?1, max(?2, (SELECT max(deleted) FROM lk_schema),
	coalesce((SELECT max(fence) FROM lk_resource), 0), coalesce((SELECT max(fence) FROM lk_floor), 0)) - ?3
	WHERE true ON CONFLICT (boot) DO NOTHING`

// setClock has the file count time. wall is what is read where processes share no clock.
func (f *file) setClock(ctx context.Context, wall func() time.Time) error {
	f.now = func() int64 { return wall().UnixMicro() }
	boot, since := bootClock()
	if boot == "" {
		return nil
	}
	id, epoch := relational.Bytes(boot), int64(0)
	read := func(ctx context.Context) error {
		return f.db.QueryRowContext(ctx, "SELECT epoch_us FROM lk_clock WHERE boot = ?", id).Scan(&epoch)
	}
	there := 0
	err := f.retry(ctx, func(ctx context.Context) error {
		const tables = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'lk_clock'"
		return f.db.QueryRowContext(ctx, tables).Scan(&there)
	})
	if err == nil && there == 0 {
		err = &locks.ValidationError{What: "schema", Why: fmt.Sprintf("the file has the tables of version %d, but lk_clock is not among them: "+
			"end all programs that have the file open, then make the table: %s", relational.Version, clockTable)}
	}
	if err != nil {
		return err
	}
	err = f.retry(ctx, func(ctx context.Context) error {
		if err := read(ctx); err != sql.ErrNoRows {
			return err
		}
		if _, err := f.db.ExecContext(ctx, anchor, id, f.now(), since().Microseconds()); err != nil {
			return err
		}
		return read(ctx)
	})
	f.now = func() int64 { return epoch + since().Microseconds() }
	return err
}
