package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// migrations are the statements that make the tables, version after version. A database of a
// version gets those behind it, in one transaction. One that was released never changes.
var migrations = [][]string{{
	`CREATE TABLE tq_task (
	queue {text} NOT NULL, id {text} NOT NULL, kind {text} NOT NULL, class {small} NOT NULL, state {small} NOT NULL,
	flags {small} NOT NULL, due {int} NOT NULL, token {int} NOT NULL, settled {int} NOT NULL, lease_end {int} NOT NULL, lease {int} NOT NULL,
	spare_end {int} NOT NULL, worker {text} NOT NULL, attempt INTEGER NOT NULL, failures INTEGER NOT NULL, crashes INTEGER NOT NULL,
	releases INTEGER NOT NULL, enqueued {int} NOT NULL, started {int} NOT NULL, ended {int} NOT NULL, forget {int} NOT NULL,
	unique_key {text} NOT NULL, expires {int} NOT NULL, retention {int} NOT NULL, max_failures INTEGER NOT NULL, max_crashes INTEGER NOT NULL,
	size INTEGER NOT NULL, extra INTEGER NOT NULL{details}, PRIMARY KEY (queue, id)) {table}`,
	`CREATE INDEX tq_task_due ON tq_task (queue, class, due, id) WHERE state < 3`,
	`CREATE INDEX tq_task_retry ON tq_task (queue, due, id) WHERE state = 2`,
	`CREATE INDEX tq_task_run ON tq_task (queue, lease_end) WHERE state = 3`,
	`CREATE INDEX tq_task_end ON tq_task (queue, state, ended, id) WHERE state > 4`,
	`CREATE INDEX tq_task_forget ON tq_task (queue, forget) WHERE forget > 0`,
	`{apart}`,
	`CREATE TABLE tq_unique (queue {text} NOT NULL, unique_key {text} NOT NULL, id {text} NOT NULL, PRIMARY KEY (queue, unique_key)) {table}`,
	`CREATE TABLE tq_queue (queue {text} NOT NULL PRIMARY KEY, settings {text} NOT NULL, last_token {int} NOT NULL, boot {text} NOT NULL, wakes {int} NOT NULL) {table}`,
	`CREATE TABLE tq_limit (queue {text} NOT NULL PRIMARY KEY, allowance DOUBLE PRECISION NOT NULL, allowed_at {int} NOT NULL) {table}`,
	`CREATE TABLE tq_worker (queue {text} NOT NULL, worker {text} NOT NULL, nonce {bytes} NOT NULL, token {int} NOT NULL,
	last_seen {int} NOT NULL, noted {int} NOT NULL, least {int} NOT NULL, sleeps {int} NOT NULL,
	added {int} NOT NULL, duplicate {int} NOT NULL, claimed {int} NOT NULL, done {int} NOT NULL, failed {int} NOT NULL, crashed {int} NOT NULL,
	released {int} NOT NULL, unhandled {int} NOT NULL, dead {int} NOT NULL, cancelled {int} NOT NULL, expired {int} NOT NULL, trimmed {int} NOT NULL,
	PRIMARY KEY (queue, worker)) {table}`,
	`CREATE TABLE tq_periodic (queue {text} NOT NULL, name {text} NOT NULL, schedule {text} NOT NULL, last {int} NOT NULL, PRIMARY KEY (queue, name)) {table}`,
	`{sequence}`,
}, {
	`ALTER TABLE tq_periodic ADD COLUMN defined {int} NOT NULL DEFAULT 0`,
}, {
	`ALTER TABLE tq_task ADD COLUMN limit_key {text} NOT NULL DEFAULT ''`,
	`ALTER TABLE tq_task ADD COLUMN limited {text} NOT NULL DEFAULT ''`,
	`CREATE INDEX tq_task_parked ON tq_task (queue, limited, class, due, id) WHERE state = 4`,
	`CREATE INDEX tq_task_limited ON tq_task (queue, due, id) WHERE state = 4`,
	`CREATE INDEX tq_task_held ON tq_task (queue, limited) WHERE state = 3 AND limited <> ''`,
	`CREATE TABLE tq_pattern (queue {text} NOT NULL PRIMARY KEY, limits {text} NOT NULL) {table}`,
	`CREATE TABLE tq_pace (queue {text} NOT NULL, name {text} NOT NULL, grp {text} NOT NULL, wakes {small} NOT NULL, at DOUBLE PRECISION NOT NULL, PRIMARY KEY (queue, name)) {table}`,
	`CREATE INDEX tq_pace_at ON tq_pace (queue, wakes, at)`,
}, {
	`CREATE TABLE tq_edge (queue {text} NOT NULL, parent {text} NOT NULL, on_failed {text} NOT NULL, child {text} NOT NULL,
	PRIMARY KEY (queue, parent, on_failed, child)) {table}`,
	`CREATE INDEX tq_edge_child ON tq_edge (queue, child)`,
	`CREATE TABLE tq_release (queue {text} NOT NULL, parent {text} NOT NULL, state {small} NOT NULL, PRIMARY KEY (queue, parent)) {table}`,
}, {
	`DROP INDEX tq_task_due`,
	`CREATE INDEX tq_task_due ON tq_task (queue, class, due, id, state) WHERE state < 3`, // SQLite counts without looking at tasks
	`CREATE TABLE tq_note (queue {text} NOT NULL, id {text} NOT NULL, value {bytes} NOT NULL, PRIMARY KEY (queue, id)) {table}`,
}}

// details are the columns of a task that do not change, as a rule, and may be large. They
// are in a table of their own on SQLite, which copies a row that changes. PostgreSQL does not
// copy what is large and stays as it is.
const details = `payload {bytes} NOT NULL, rest {bytes} NOT NULL, error {bytes} NOT NULL, result {bytes} NOT NULL, progress {bytes} NOT NULL`

// differs is what the words of a migration stand for in a dialect; an empty statement is left
// out.
func (d *dialect) differs(statement string) string {
	const key = "queue TEXT NOT NULL, id TEXT NOT NULL, "
	apart, sequence, inRow := "CREATE TABLE tq_payload ("+key+details+", PRIMARY KEY (queue, id)) {table}", "", ""
	if d.postgres {
		apart, sequence, inRow = "", "CREATE SEQUENCE tq_token INCREMENT BY 1000", ", "+details
	}
	return strings.NewReplacer("{apart}", apart, "{sequence}", sequence, "{details}", inRow).Replace(statement)
}

// migrate brings the tables to the version that this code has, and returns the id of the
// store. Several processes may do it at once: whoever comes first has them wait.
func migrate(ctx context.Context, db database, install string) (string, error) {
	var there int64
	err := db.transact(ctx, reads, func(t tx) (err error) { there, install, err = version(t, db.dialect(), install); return err })
	if err != nil || there == int64(len(migrations)) {
		return install, err
	}
	err = db.transact(ctx, writes, func(t tx) error {
		if db.dialect().postgres {
			if err := t.run(statement("SELECT pg_advisory_xact_lock(hashtext('tq_schema'))")); err != nil {
				return err
			}
		}
		there, known, err := version(t, db.dialect(), install)
		if err != nil {
			return err
		}
		all := []query{}
		if there == 0 {
			all = append(all, statement("CREATE TABLE tq_schema (version {int} NOT NULL, install {text} NOT NULL)"), statement("INSERT INTO tq_schema VALUES (0, '"+install+"')"))
		} else {
			install = known
		}
		for _, statements := range migrations[there:] {
			for _, s := range statements {
				if s = db.dialect().differs(s); s != "" {
					all = append(all, statement(s))
				}
			}
		}
		for _, q := range append(all, statement("UPDATE tq_schema SET version = $1", int64(len(migrations)))) {
			if err := t.run(q); err != nil {
				return err
			}
		}
		return nil
	})
	return install, err
}

// version returns the version of the tables, 0 if there are none, and the id of the store.
func version(t tx, d *dialect, install string) (v int64, _ string, err error) {
	find := "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'tq_schema'"
	if d.postgres {
		// To read a table has the server see those that others have just made; by to_regclass alone it
		// would say what it knew before the wait for the lock.
		find = "SELECT count(*) FROM pg_catalog.pg_class WHERE oid = to_regclass('tq_schema')"
	}
	var tables int64
	if err := t.run(row(find, nil, &tables)); err != nil || tables == 0 {
		return 0, install, err
	}
	if err := t.run(row("SELECT version, install FROM tq_schema", nil, &v, &install)); err != nil {
		return 0, install, err
	}
	if v == 0 {
		return 0, install, errors.New("taskqueue: the table of the version is there, and empty: put its row back, or use another Prefix")
	}
	if v > int64(len(migrations)) {
		return 0, install, fmt.Errorf("taskqueue: the tables are of version %d, this program knows up to %d: update the program", v, len(migrations))
	}
	return v, install, nil
}
