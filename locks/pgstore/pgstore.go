// Package pgstore is a locks.Store in a PostgreSQL database, version 12 or later.
//
// The clock of the store is that of the server. The store has three tables and one more
// for its version, in the first schema of the search path. Its transactions are short:
// one that a stopped process leaves open is ended by the server after two seconds.
//
// Importing it has [locks.Open] know URLs such as "postgres://user@localhost/app".
package pgstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/relational"
)

func init() {
	for _, scheme := range []string{"postgres", "postgresql"} {
		locks.Register(scheme, func(ctx context.Context, url string) (locks.Store, error) { return Open(ctx, url) })
	}
}

// A Store is a locks.Store in a PostgreSQL database.
type Store struct {
	relational.Store
	hub relational.Hub
	pg  *backend
	own bool // the pool is the store's own
}

// Open connects to a database, as [pgxpool.New] does, and makes its tables if they are
// not there. Close closes the connections.
func Open(ctx context.Context, url string) (*Store, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil { // it may show what is in the URL
		return nil, &locks.ValidationError{What: "store", Why: "the URL of PostgreSQL is not valid: write postgres://USER:PASSWORD@HOST:PORT/DATABASE"}
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, failure(ctx, err)
	}
	s, err := open(ctx, pool, true)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return s, nil
}

// New returns a store in the database of a pool, and makes its tables if they are not
// there. It uses one connection of the pool at a time for each call, so a pool of one
// connection is enough. While all connections of the pool are in use it renews leases by one
// of its own beside the pool. While somebody waits for a lock it has another, for LISTEN: a
// pooler between them and the server has to keep sessions together, or those who wait ask ten
// times a second in place of being told. Such a pooler also needs
// default_query_exec_mode=exec in the URL. Close does not close the pool.
func New(ctx context.Context, pool *pgxpool.Pool) (*Store, error) {
	if pool == nil {
		return nil, &locks.ValidationError{What: "store", Why: "the pool is nil: make it with pgxpool.New, and look at its error"}
	}
	return open(ctx, pool, false)
}

func open(ctx context.Context, pool *pgxpool.Pool, own bool) (*Store, error) {
	s := &Store{own: own}
	s.pg = &backend{pool: pool, client: rand.Text(), hub: &s.hub, spare: spare{turn: make(chan struct{}, 1)}}
	s.Backend, s.Client, s.Hints = s.pg, s.pg.client, &s.hub
	if err := s.pg.migrate(ctx); err != nil {
		return nil, err
	}
	s.hub.Start = s.pg.listen
	return s, nil
}

// Listen tells of what other processes change as soon as the server does.
func (s *Store) Listen(name locks.Name) (<-chan struct{}, func()) { return s.hub.Listen(name) }

// Traits says that PostgreSQL can do everything.
func (s *Store) Traits() locks.Traits {
	return locks.Traits{Name: "postgres", MinLease: 500 * time.Millisecond, Hints: true}
}

// Close has every later step fail. It closes the pool if the store has opened it.
func (s *Store) Close() error {
	s.pg.closed.Store(true)
	s.StopTidying()
	s.hub.Close()
	s.pg.spare.close()
	if s.own {
		s.pg.pool.Close()
	}
	return nil
}

// never says why the server will not do it however often it is asked; nothing if it may.
func never(err error) string {
	var said *pgconn.PgError
	switch {
	case !errors.As(err, &said):
	case strings.HasPrefix(said.Code, "28"), said.Code == "42501":
		return "the user may not"
	case said.Code == "42P05", said.Code == "26000":
		return "a pooler in transaction mode is in between: add default_query_exec_mode=exec to the URL"
	case said.Code == "3D000", said.Code == "3F000":
		return "there is no such database, or no schema to make tables in"
	}
	return ""
}

// failure is the error of a step of which it is not known whether it was done.
func failure(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, locks.ErrValidation) || errors.Is(err, locks.ErrUnavailable) {
		return err
	}
	if why := never(err); why != "" {
		return locks.Invalid(fmt.Errorf("postgres: %s: %w", why, err))
	}
	if cause := context.Cause(ctx); cause != nil {
		err = errors.Join(cause, err)
	}
	return locks.Unavailable(fmt.Errorf("postgres: %w", err))
}
