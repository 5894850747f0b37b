package mysqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/ambit-go/ambit/locks"
)

// renewing is the key of a value of a context by which leases are renewed.
type renewing struct{}

// Renew is a method of locks.Store. Leases are renewed by a connection that the store has
// reserved: while the user keeps all others of the pool they would be lost though the database
// is well.
func (s *Store) Renew(ctx context.Context, renewals []locks.Renewal) ([]locks.RenewResult, error) {
	return s.Store.Renew(context.WithValue(ctx, renewing{}, true), renewals)
}

// leastShared is how many connections a pool has of which one is reserved: with MariaDB
// another is in use while somebody waits, and one has to be left.
const leastShared = 3

// A spare is a connection of the pool for renewals. A pool without a limit needs none.
type spare struct {
	turn chan struct{} // has room for the one that uses it; nil: nothing is reserved
	conn *sql.Conn     // used by who has the turn; nil: it has to be taken again
}

// reserve takes the connection from the pool.
func (b *backend) reserve(ctx context.Context) (err error) {
	if b.db.Stats().MaxOpenConnections < leastShared {
		return nil
	}
	b.spare.turn = make(chan struct{}, 1)
	b.spare.conn, err = b.db.Conn(ctx)
	return failure(ctx, err)
}

// begin begins a transaction. One that was begun with the reserved connection gives it back by
// done.
func (b *backend) begin(ctx context.Context, options *sql.TxOptions) (tx *sql.Tx, done func(), err error) {
	if ctx.Value(renewing{}) == nil || b.spare.turn == nil {
		tx, err = b.db.BeginTx(ctx, options)
		return tx, func() {}, err
	}
	select {
	case b.spare.turn <- struct{}{}:
	default: // another renewal has it, maybe a slow one of long leases
		if stats := b.db.Stats(); stats.InUse < stats.MaxOpenConnections {
			tx, err = b.db.BeginTx(ctx, options)
			return tx, func() {}, err
		}
		select {
		case b.spare.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
	done = func() { <-b.spare.turn }
	for range 2 {
		if b.closed.Load() { // what is taken now nobody gives back
			err = locks.ErrClosed
			break
		}
		if err = nil; b.spare.conn == nil {
			b.spare.conn, err = b.db.Conn(ctx)
		}
		if err == nil {
			tx, err = b.spare.conn.BeginTx(ctx, options)
		}
		if !errors.Is(err, driver.ErrBadConn) && !errors.Is(err, sql.ErrConnDone) {
			break
		}
		if b.spare.conn != nil {
			_ = b.spare.conn.Close() // the server has ended it
		}
		b.spare.conn = nil
	}
	if err != nil {
		done()
	}
	return tx, done, err
}

// close waits for who uses the connection, and gives it back to the pool.
func (s *spare) close() {
	if s.turn == nil {
		return
	}
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.conn != nil {
		_ = s.conn.Close()
	}
}
