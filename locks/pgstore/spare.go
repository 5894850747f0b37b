package pgstore

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ambit-go/ambit/locks"
)

// renewing is the key of a value of a context by which leases are renewed.
type renewing struct{}

// Renew is a method of locks.Store. While the user keeps all connections of the pool, leases
// are renewed by one beside the pool: else they would be lost though the database is well.
func (s *Store) Renew(ctx context.Context, renewals []locks.Renewal) ([]locks.RenewResult, error) {
	return s.Store.Renew(context.WithValue(ctx, renewing{}, true), renewals)
}

// A spare is a connection beside the pool. It is made when it is needed first.
type spare struct {
	turn chan struct{} // has room for the one that uses it
	conn *pgx.Conn     // used by who has the turn; nil: there is none
}

// conn returns a connection, which is to be given back by done.
func (b *backend) conn(ctx context.Context) (c *pgx.Conn, done func(), err error) {
	if stat := b.pool.Stat(); ctx.Value(renewing{}) != nil && stat.AcquiredConns() >= stat.MaxConns() {
		return b.spare.take(ctx, b.pool.Config())
	}
	of, err := b.pool.Acquire(ctx)
	if err != nil {
		return nil, nil, err
	}
	return of.Conn(), of.Release, nil
}

// connect makes a connection as the pool does.
func connect(ctx context.Context, config *pgxpool.Config) (*pgx.Conn, error) {
	if config.BeforeConnect != nil {
		if err := config.BeforeConnect(ctx, config.ConnConfig); err != nil {
			return nil, err
		}
	}
	c, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err == nil && config.AfterConnect != nil {
		if err = config.AfterConnect(ctx, c); err != nil {
			_ = c.Close(ctx)
		}
	}
	return c, err
}

// prepare does what the pool does each time that a connection is taken. The connection is
// closed if it is not to be used.
func prepare(ctx context.Context, config *pgxpool.Config, c *pgx.Conn) error {
	use, err := true, error(nil)
	switch {
	case config.PrepareConn != nil:
		use, err = config.PrepareConn(ctx, c)
	//lint:ignore SA1019 pools of older programs have it
	case config.BeforeAcquire != nil:
		//lint:ignore SA1019 the same
		use = config.BeforeAcquire(ctx, c)
	}
	if !use {
		_ = c.Close(ctx)
	}
	if err == nil && !use {
		err = errRefused
	}
	return err
}

var errRefused = errors.New("postgres: a function of the pool refuses a new connection")

func (s *spare) take(ctx context.Context, config *pgxpool.Config) (c *pgx.Conn, done func(), err error) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	done = func() { <-s.turn }
	if s.conn != nil && !s.conn.IsClosed() {
		if err = prepare(ctx, config, s.conn); err == nil {
			return s.conn, done, nil
		}
	}
	if s.conn, err = connect(ctx, config); err == nil {
		err = prepare(ctx, config, s.conn)
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	return s.conn, done, nil
}

// close waits for who uses the connection. The store takes it no more when it is closed.
func (s *spare) close() {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.conn != nil {
		_ = s.conn.Close(context.Background())
	}
}
