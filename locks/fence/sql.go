package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/locks"
)

// SQL returns a condition for an UPDATE, or for the WHERE of an upsert, on a row that keeps
// the greatest token in a column of 64 bits. parameter is how the database writes the
// parameter that is the token: "?", "$3", ":token". The column is set to the token in the
// same statement; no row that changes means that the token is stale:
//
//	r, err := db.Exec("UPDATE account SET balance = $1, fence = $2 WHERE id = $3 AND "+fence.SQL("fence", "$2"),
//		balance, token.Value, id)
//
// A row that several slots write to needs a column for each. Neither argument may come from
// users: they are put into the text as they are.
func SQL(column, parameter string) string {
	return fmt.Sprintf("(%s IS NULL OR %[1]s <= %s)", column, parameter)
}

// A Row is the one row that a statement returns: a *sql.Row, or a pgx.Row.
type Row interface{ Scan(dest ...any) error }

// A Query makes a statement in a transaction of the user's own. For database/sql it is
// [Tx]. For pgx:
//
//	func(ctx context.Context, q string, args ...any) fence.Row { return tx.QueryRow(ctx, q, args...) }
type Query func(ctx context.Context, query string, args ...any) Row

// Tx returns the Query of a *sql.Tx, or of a *sql.Conn in a transaction.
func Tx(tx interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}) Query {
	return func(ctx context.Context, query string, args ...any) Row {
		return tx.QueryRowContext(ctx, query, args...)
	}
}

// Same checks in a transaction of the user's own, on the database that the lock is kept in,
// that the lock is held, and keeps it from being granted to anybody else until that
// transaction has ended: if Same returns nil and the commit succeeds, all that the
// transaction has done was done under the lock. This is real exclusion, as no token gives.
//
// Call it last, and commit at once: while the transaction lasts the lease cannot be renewed,
// so it is bound to end within a third of the lease; Same returns an error if less than that
// is left. With SQLite, where a transaction keeps all others from writing, it is good for a
// short one that was begun with BEGIN IMMEDIATE. The isolation may be any.
//
// It returns the [*locks.LostError] if the loss is known, a [*StaleError] if the database does
// not have the lease, an error that matches [locks.ErrValidation] if the locks are not in a SQL
// database, and what the database said otherwise. After any error roll back.
func Same(ctx context.Context, tx Query, h *locks.Hold) error {
	lock, left, ok := h.FenceQueries()
	if !ok {
		return &locks.ValidationError{What: "Same", Why: "the locks are not kept in a SQL database: send the token along instead"}
	}
	if err := h.Err(); err != nil {
		return err
	}
	var n int64
	if err := tx(ctx, lock.SQL, lock.Args...).Scan(&n); err != nil {
		return fmt.Errorf("fence: the row of the lock could not be locked: %w", err)
	}
	if err := tx(ctx, left.SQL, left.Args...).Scan(&n); err != nil {
		return fmt.Errorf("fence: the lease could not be read: %w", err)
	}
	if n <= 0 {
		return &StaleError{Key: h.Key(), Slot: h.Slot(), Token: h.Token()}
	}
	if remains := time.Duration(n) * time.Microsecond; remains < h.Lease()/3 {
		return fmt.Errorf("%w: %v of the lease are left", errLittle, remains)
	}
	return h.Err()
}

var errLittle = errors.New("fence: too little of the lease is left for a commit: try again after the next renewal")
