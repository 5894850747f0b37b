package sqlitestore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"time"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/pause"
	"github.com/ambit-go/ambit/locks/internal/relational"
)

// every is how long the watcher sleeps between two looks at the file at least.
const every = 2 * time.Millisecond

// watch looks for changes of the file, by any process, until stop is called. SQLite
// keeps a number that a connection sees change with every commit of another one; to
// read it takes some microseconds. Only then one number is read of each lock that somebody
// listens for, and only those hinted that have a request of this process which can be
// granted: a hint makes its reader write, and would otherwise wake all other processes.
func watch(f *file, path string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w := &watcher{file: f, mark: relational.Mark(f.client), seen: map[locks.Name]int64{}, stirs: time.Now()}
		for ctx.Err() == nil {
			w.run(ctx, path) // ends by itself only if the file cannot be read
			_ = pause.For(ctx, time.Second)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

type watcher struct {
	*file
	mark int64 // of this process
	// seen has the wakes that each lock had when it was looked at last.
	seen  map[locks.Name]int64
	stirs time.Time // when it was last somebody's turn, or somebody began to wait
}

// beside opens a file by the driver of another pool. A second library would do harm: when it
// closes the file, the system drops all locks that this process has on it (POSIX).
type beside struct {
	driver driver.Driver
	path   string
}

func (b beside) Connect(context.Context) (driver.Conn, error) { return b.driver.Open(fileURL(b.path)) }
func (b beside) Driver() driver.Driver                        { return b.driver }

func (w *watcher) run(ctx context.Context, path string) {
	db := sql.OpenDB(beside{w.db.Driver(), path})
	defer func() { _ = db.Close() }()
	conn, err := db.Conn(ctx) // the number is that of a connection
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	for _, pragma := range []string{"PRAGMA busy_timeout = 0", "PRAGMA query_only = 1"} { // drivers write them differently in a DSN
		if _, err := conn.ExecContext(ctx, pragma); err != nil {
			return
		}
	}
	changed, err := conn.PrepareContext(ctx, "PRAGMA data_version")
	if err != nil {
		return
	}
	defer func() { _ = changed.Close() }()
	last := int64(-1)
	for ctx.Err() == nil {
		wait := relational.Pause(every, time.Since(w.stirs))
		var number int64
		if err := changed.QueryRowContext(context.Background()).Scan(&number); err != nil && !busy(err) {
			return
		} else if err == nil && number != last {
			began := time.Now()
			w.look()
			last = number
			wait = max(wait, 3*time.Since(began)) // never more than a quarter of the time
		}
		_ = pause.For(ctx, wait)
	}
}

// look hints what it is the turn of this process for.
func (w *watcher) look() {
	ctx := context.Background()
	seen := make(map[locks.Name]int64, len(w.seen))
	for _, name := range w.hub.Keys() {
		var wakes int64
		if err := w.statements.wakes.QueryRowContext(ctx, relational.Key(name)...).Scan(&wakes); err != nil {
			continue // there is none, or the next change shows it
		}
		seen[name] = wakes
		if was, there := w.seen[name]; there && was == wakes {
			continue
		}
		w.stirs = time.Now()
		if relational.Marked(wakes, w.mark) {
			w.hub.Hint(name)
		}
	}
	w.seen = seen
}
