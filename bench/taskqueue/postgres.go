package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ambit-go/ambit/locks/lockstest/servers"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/sqlstore"
)

// postgresWorkers is how many tasks a worker runs at once, and postgresConns how many connections a pool has, ours
// and river's.
const (
	postgresWorkers = 100
	postgresConns   = 10
)

// A postgres is a server of our own that waits for its disk, as both sides need it to keep what they have acknowledged.
type postgres struct {
	starter   starter
	server    *servers.Server
	databases int
}

func startPostgres() *postgres {
	p := new(postgres)
	p.server = servers.Postgres(&p.starter, "-c", "fsync=on", "-c", "max_connections=300")
	return p
}

// stop ends the server that was started, and removes its folder.
func (p *postgres) stop() { p.starter.end() }

// A starter starts servers for a program as a test does.
type starter struct {
	testing.TB
	cleanups []func()
}

func (*starter) Helper()                          {}
func (s *starter) Cleanup(f func())               { s.cleanups = append(s.cleanups, f) }
func (s *starter) Fatal(args ...any)              { panic(fmt.Sprint(args...)) }
func (s *starter) Fatalf(text string, arg ...any) { panic(fmt.Sprintf(text, arg...)) }
func (s *starter) Skip(args ...any)               { panic(fmt.Sprint(args...)) }

func (s *starter) end() {
	for i := len(s.cleanups) - 1; i >= 0; i-- {
		s.cleanups[i]()
	}
}

// pool opens an empty database of its own, and returns what closes and removes it.
func (p *postgres) pool(ctx context.Context) (*pgxpool.Pool, func()) {
	p.databases++
	name := fmt.Sprint("bench", p.databases)
	admin, err := pgxpool.New(ctx, p.server.URL)
	must(err)
	_, err = admin.Exec(ctx, "CREATE DATABASE "+name)
	must(err)
	config, err := pgxpool.ParseConfig(p.server.URL)
	must(err)
	config.ConnConfig.Database, config.MaxConns = name, postgresConns
	pool, err := pgxpool.NewWithConfig(ctx, config)
	must(err)
	return pool, func() {
		pool.Close()
		_, err := admin.Exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)")
		must(err)
		admin.Close()
	}
}

// ambit returns our queue in an empty database, its pool, and what gives them back.
func (p *postgres) ambit(ctx context.Context) (*taskqueue.Queue, *pgxpool.Pool, func()) {
	pool, drop := p.pool(ctx)
	q, closed := ambitOn(ctx, pool)
	return q, pool, func() { closed(); drop() }
}

func ambitOn(ctx context.Context, pool *pgxpool.Pool) (*taskqueue.Queue, func()) {
	store, err := sqlstore.New(ctx, pool)
	must(err)
	q, err := taskqueue.New(store)
	must(err)
	return q, func() { must(store.Close()) }
}
