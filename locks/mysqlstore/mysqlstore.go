// Package mysqlstore is a locks.Store in a MariaDB database, version 10.6 or later, or in
// one of MySQL, version 8 or later.
//
// The clock of the store is that of the server. The store has three tables and one more
// for its version, in the database of the connection.
//
// Importing it has [locks.Open] know URLs such as "mysql://user@localhost:3306/app".
package mysqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/relational"
)

func init() {
	locks.Register("mysql", func(ctx context.Context, url string) (locks.Store, error) { return Open(ctx, url) })
}

// A Store is a locks.Store in a database of MariaDB or MySQL.
type Store struct {
	relational.Store
	hub   relational.Hub
	db    *backend
	own   bool     // the pool is the store's own
	watch *watcher // nil where there are no hints of other processes
}

// Open connects to a database and makes its tables if they are not there. The URL is as
// "mysql://USER:PASSWORD@HOST:PORT/DATABASE?PARAMETERS", or "mysql:" and a data source
// name of the driver. The server ends the transactions of the store whose process was
// stopped, after two seconds (MariaDB alone can do that). Close closes the connections.
func Open(ctx context.Context, url string) (*Store, error) {
	config, err := parse(url)
	if err != nil { // it may show what is in the URL
		return nil, &locks.ValidationError{What: "store", Why: "the URL of MySQL is not valid: write mysql://USER:PASSWORD@HOST:PORT/DATABASE"}
	}
	config.Logger = &mysql.NopLogger{} // what it has to say is in the errors
	if err := settle(ctx, config); err != nil {
		return nil, err
	}
	db, err := connect(config)
	if err != nil {
		return nil, err
	}
	db.SetMaxIdleConns(8)
	s, err := open(ctx, db, true)
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	return s, nil
}

// New returns a store in the database of a pool of the driver of go-sql-driver, and makes
// its tables if they are not there. It uses one connection of the pool at a time for each
// call, and with MariaDB one more while somebody waits, unless it is a pool of one
// connection, which is enough, but has those who wait ask more often. It reserves one of a pool of
// three or more for renewals until Close; a smaller one that the user keeps busy costs leases. With MariaDB it is good to have
// idle_transaction_timeout=2 as a parameter of the data source name: then the server
// ends the transactions of a process that was stopped. With MySQL it is good to have
// innodb_lock_wait_timeout=1: else a free mutex is taken in several steps. Close does not close the pool.
func New(ctx context.Context, db *sql.DB) (*Store, error) {
	if db == nil {
		return nil, &locks.ValidationError{What: "store", Why: "the pool is nil: make it with sql.Open, and look at its error"}
	}
	return open(ctx, db, false)
}

func parse(text string) (*mysql.Config, error) {
	if !strings.HasPrefix(text, "mysql://") {
		return mysql.ParseDSN(strings.TrimPrefix(text, "mysql:"))
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	config, err := mysql.ParseDSN("/?" + u.RawQuery)
	if err != nil {
		return nil, err
	}
	config.User, config.DBName, config.Addr = u.User.Username(), strings.TrimPrefix(u.Path, "/"), u.Host
	config.Passwd, _ = u.User.Password()
	if u.Port() == "" {
		config.Addr = net.JoinHostPort(u.Hostname(), "3306")
	}
	return config, nil
}

func connect(config *mysql.Config) (*sql.DB, error) {
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, &locks.ValidationError{What: "store", Why: "a parameter of the URL of MySQL is not valid"}
	}
	return sql.OpenDB(connector), nil
}

// settle adds to the parameters of the store's own connections what the server knows.
func settle(ctx context.Context, config *mysql.Config) error {
	db, err := connect(config)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	var version string
	if err := db.QueryRowContext(ctx, "SELECT version()").Scan(&version); err != nil {
		return failure(ctx, err)
	}
	settings := map[string]string{"innodb_lock_wait_timeout": "1"} // one who was not waited for gives up soon
	if isMaria(version) {
		settings["idle_transaction_timeout"] = "2"
	}
	if config.Params == nil {
		config.Params = map[string]string{}
	}
	for name, value := range settings {
		if _, there := config.Params[name]; !there {
			config.Params[name] = value
		}
	}
	return nil
}

func open(ctx context.Context, db *sql.DB, own bool) (*Store, error) {
	s := &Store{own: own}
	b := &backend{db: db, client: rand.Text(), hub: &s.hub}
	b.Reads = relational.Reads{
		Prepared: &b.statements.Prepared, DB: db, Options: sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true},
		Retry: b.retry, Time: b.time,
	}
	s.db = b
	s.Backend, s.Client, s.Hints = s.db, s.db.client, &s.hub
	if err := s.db.migrate(ctx); err != nil {
		return nil, err
	}
	var version string
	var patience int
	if err := db.QueryRowContext(ctx, "SELECT version(), @@innodb_lock_wait_timeout").Scan(&version, &patience); err != nil {
		return nil, failure(ctx, err)
	}
	s.db.maria, s.db.short = isMaria(version), isMaria(version) || patience <= 2
	if err := s.db.retry(ctx, s.db.prepare); err != nil {
		return nil, err
	}
	if err := s.db.reserve(ctx); err != nil {
		return nil, err
	}
	if isMaria(version) && db.Stats().MaxOpenConnections != 1 {
		s.watch = newWatcher(s.db)
	}
	return s, nil
}

func isMaria(version string) bool { return strings.Contains(version, "MariaDB") }

// Listen tells of what other processes change within some milliseconds, where Traits says
// that there are hints.
func (s *Store) Listen(name locks.Name) (<-chan struct{}, func()) { return s.hub.Listen(name) }

// Traits says that MariaDB can do everything. MySQL, and a pool of one connection, have
// no hints of other processes.
func (s *Store) Traits() locks.Traits {
	return locks.Traits{Name: "mysql", MinLease: 500 * time.Millisecond, Hints: s.watch != nil}
}

// Close has every later step fail. It closes the pool if the store has opened it.
func (s *Store) Close() error {
	s.db.closed.Store(true)
	s.StopTidying()
	s.hub.Close()
	if s.watch != nil {
		s.watch.close()
	}
	s.db.spare.close()
	err := s.db.statements.Close()
	if s.own {
		err = errors.Join(err, s.db.db.Close())
	}
	return err
}

// never are what the server says to what it will not do however often it is asked.
var never = []uint16{1044, 1045, 1049, 1142, 1143, 1227, 1370, 1698}

// failure is the error of a step of which it is not known whether it was done.
func failure(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, locks.ErrValidation) || errors.Is(err, locks.ErrUnavailable) {
		return err
	}
	var said *mysql.MySQLError
	if errors.As(err, &said) && slices.Contains(never, said.Number) {
		return locks.Invalid(fmt.Errorf("mysql: the user may not, or there is no such database: %w", err))
	}
	if cause := context.Cause(ctx); cause != nil {
		err = errors.Join(cause, err)
	}
	return locks.Unavailable(fmt.Errorf("mysql: %w", err))
}
