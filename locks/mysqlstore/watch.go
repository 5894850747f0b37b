package mysqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/pause"
	"github.com/ambit-go/ambit/locks/internal/relational"
)

// There is no NOTIFY. The watcher has the server itself look, some hundred times a second,
// whether it is the turn of this process, and answer when it is, or after a second: one
// command a second, for all locks that somebody in this process waits for. Only MariaDB
// takes such a command.
const watchText = `BEGIN NOT ATOMIC
	DECLARE n INT DEFAULT 0;
	DECLARE w BIGINT;
	REPEAT
		SET n = n + 1;
		DO SLEEP(?);
		SELECT count(*) INTO w FROM `

var (
	watchLoop  = watchText + rows("lk_resource") + " WHERE r.wakes & ? = ? AND r.wakes <> q.w; UNTIL w > 0 OR n >= ? END REPEAT; SELECT w; END"
	watchWakes = "SELECT r.tenant, r.`key`, r.wakes, r.waiters FROM " + rows("lk_resource")
)

// watcher brings hints of what other processes change.
type watcher struct {
	*backend
	mark int64 // of this process
	// stirs is when it was last somebody's turn, or somebody began to wait. Used by run alone.
	stirs time.Time
	crowd int64           // about how many processes waited for one of the locks at the last look, the most. Used by run alone.
	ctx   context.Context // done when the store is closed
	end   context.CancelFunc
	wg    sync.WaitGroup // what runs

	mu      sync.Mutex
	wanted  bool // somebody listens
	running bool
	// covers has the locks that the command which the server works on looks at, with the
	// wakes that each had; nil without one. connection is the server's number of it.
	covers     map[locks.Name]int64
	connection int64
	kicking    bool
}

func newWatcher(b *backend) *watcher {
	w := &watcher{backend: b, mark: relational.Mark(b.client)}
	w.ctx, w.end = context.WithCancel(context.Background())
	b.hub.Start, b.hub.Added = w.start, w.added
	return w
}

// start has run end only after the command that it waits for: who waits for a contended
// lock starts and stops many times a second.
func (w *watcher) start() (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted = true
	if !w.running && w.ctx.Err() == nil {
		w.running = true
		w.wg.Go(w.run)
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.wanted = false
	}
}

func (w *watcher) close() {
	w.mu.Lock()
	w.end() // nothing is added to wg after this
	w.mu.Unlock()
	w.wg.Wait()
}

func (w *watcher) run() {
	for wait := 50 * time.Millisecond; w.goesOn(); wait = min(2*wait, 5*time.Second) {
		if w.watch() {
			wait = 50 * time.Millisecond
		}
		_ = pause.For(w.ctx, wait)
	}
}

// goesOn says whether somebody still listens. If not, run ends.
func (w *watcher) goesOn() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = w.wanted && w.ctx.Err() == nil
	return w.running
}

// watch watches on one connection until it fails, or nobody listens. It says whether any
// command was done.
func (w *watcher) watch() (done bool) {
	c, err := w.db.Conn(w.ctx)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	var id int64
	if err := c.QueryRowContext(w.ctx, "SELECT connection_id()").Scan(&id); err != nil {
		return false
	}
	defer w.uncover()
	seen := map[locks.Name]int64{}
	for {
		w.mu.Lock()
		wanted := w.wanted
		w.mu.Unlock()
		if !wanted {
			return true
		}
		now, err := w.look(c, seen)
		if err == nil {
			seen = now
			err = w.command(c, id, seen)
		}
		if err != nil && !interrupted(err) {
			return done
		}
		done = true
	}
}

// look hints what it is the turn of this process for, unless it was seen before.
func (w *watcher) look(c *sql.Conn, seen map[locks.Name]int64) (now map[locks.Name]int64, err error) {
	now, w.crowd = all(w.hub.Keys()), 0
	lines, err := linesOf(now)
	if err != nil {
		return nil, err
	}
	rows, err := c.QueryContext(w.ctx, watchWakes, lines)
	err = relational.Each(rows, err, func(scan func(...any) error) error {
		var name locks.Name
		var wakes, waiters int64
		err := scan(relational.String(&name.Tenant), relational.String(&name.Key), &wakes, &waiters)
		now[name], w.crowd = wakes, max(w.crowd, waiters/int64(max(w.hub.Listening(name), 1)))
		return err
	})
	if err != nil {
		return nil, err
	}
	for name, wakes := range now {
		if was, there := seen[name]; there && was == wakes {
			continue
		}
		w.stirs = time.Now()
		if relational.Marked(wakes, w.mark) {
			w.hub.Hint(name)
		}
	}
	return now, nil
}

// command has the server wait for a change.
func (w *watcher) command(c *sql.Conn, id int64, seen map[locks.Name]int64) error {
	lines, err := linesOf(seen)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.covers, w.connection = seen, id
	w.mu.Unlock()
	defer w.uncover()
	var turns int64
	every := relational.Pause(least(len(seen), w.crowd), time.Since(w.stirs))
	return c.QueryRowContext(w.ctx, watchLoop, every.Seconds(), lines, w.mark, w.mark, int64(time.Second/every)).Scan(&turns)
}

// fewWait is how many processes wait for one lock at most while each of them has the server look every 4 ms.
const fewWait = 8

// least is the least pause between two looks of the server at some locks, for one of which crowd processes wait. A look at many
// costs more. However many processes wait for one, the server looks some 2,000 times a second for all of them: if each
// had its own pace, the looks of 64 would leave it no time for the steps of those whose turn it is.
func least(locks int, crowd int64) time.Duration {
	return 4*time.Millisecond*time.Duration(min(max(crowd, fewWait), 500))/fewWait + time.Duration(locks)*100*time.Microsecond
}

func (w *watcher) uncover() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.covers, w.connection = nil, 0
}

// added interrupts the command if it does not look at the lock. If that comes too late or
// too early, the command ends within a second anyway.
func (w *watcher) added(name locks.Name) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, covered := w.covers[name]; covered || w.connection == 0 || w.kicking || w.ctx.Err() != nil {
		return
	}
	w.kicking = true
	id := w.connection
	w.wg.Go(func() {
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		_, _ = w.db.ExecContext(ctx, "KILL QUERY "+strconv.FormatInt(id, 10))
		w.mu.Lock()
		defer w.mu.Unlock()
		w.kicking = false
	})
}

// interrupted says whether an error is that of KILL QUERY.
func interrupted(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && e.Number == 1317
}
