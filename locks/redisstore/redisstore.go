// Package redisstore is a locks.Store on a Redis server. Every step is one script, with
// the clock of the server.
//
// The server must be 6.2 or newer and must not evict keys (maxmemory-policy noeviction).
// With the append-only file off, or after a failover to a replica that had not got it
// yet, the server forgets grants: then two may hold a lock, until the leases that it has
// forgotten are over. Only a resource that checks the fence is safe from that.
//
// The locks of a tenant are in 64 slots of a cluster.
package redisstore

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ambit-go/ambit/locks"
)

//go:embed *.lua
var files embed.FS

// A Store keeps locks on a Redis server.
type Store struct {
	client redis.UniversalClient
	own    redis.UniversalClient // the client that Close closes; nil if it is the user's
	prefix string
	warn   func(text string)
	id     string // of this process, for hints
	hints  hints
	closed atomic.Bool

	acquire, renew, release, admin, read *redis.Script
}

var (
	_ locks.Store   = (*Store)(nil)
	_ locks.Resumer = (*Store)(nil)
)

// An Option changes a store.
type Option func(*Store)

// Prefix is what all keys begin with. Defaults to "lk".
func Prefix(p string) Option { return func(s *Store) { s.prefix = p } }

// Warn has f told what is wrong with the settings of the server, and what to do.
// Defaults to a line of package log/slog for each.
func Warn(f func(text string)) Option { return func(s *Store) { s.warn = f } }

// New returns the store in the database that client uses. It looks at the server: one
// that is too old is an error, and settings by which locks may get lost are warned of.
// The client is not closed with the store.
func New(ctx context.Context, client redis.UniversalClient, opts ...Option) (*Store, error) {
	s := &Store{client: client, prefix: "lk", id: rand.Text(), warn: func(text string) { slog.Warn("locks: " + text) }}
	if v := reflect.ValueOf(client); client == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, &locks.ValidationError{What: "store", Why: "the client is nil: make it with redis.NewClient"}
	}
	for _, opt := range opts {
		if opt == nil {
			return nil, &locks.ValidationError{What: "option", Why: "it is nil: leave it out"}
		}
		opt(s)
	}
	major, err := s.inspect(ctx)
	if err != nil {
		return nil, err
	}
	if err := client.Publish(ctx, s.channels()+s.id, "").Err(); redis.IsPermissionError(err) {
		s.warn(fmt.Sprintf("the user of Redis may not publish, so those who wait are told late: allow it the channels %s*", s.channels()))
	}
	s.load(major >= 7)
	s.hints.s = s
	return s, nil
}

func init() {
	for _, scheme := range []string{"redis", "rediss", "unix"} {
		locks.Register(scheme, open)
	}
}

// open returns the store at a URL of package go-redis, with a client of its own.
func open(ctx context.Context, url string) (locks.Store, error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, &locks.ValidationError{What: "store", Why: "the URL is none of Redis: write it as redis://USER:PASSWORD@HOST:PORT/DB"}
	}
	client := redis.NewClient(o)
	s, err := New(ctx, client)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	s.own = client
	return s, nil
}

// load makes the scripts. Steps that free memory, or keep what is there, are allowed
// when the server is full, if it can be told so.
func (s *Store) load(flags bool) {
	common, err := files.ReadFile("common.lua")
	if err != nil {
		panic(err) // it is part of the program
	}
	script := func(name, line string) *redis.Script {
		body, err := files.ReadFile(name + ".lua")
		if err != nil {
			panic(err)
		}
		if !flags {
			line = ""
		}
		return redis.NewScript(line + string(common) + string(body))
	}
	const full = "#!lua flags=allow-oom\n"
	s.acquire = script("acquire", "#!lua\n")
	s.renew = script("renew", full)
	s.release = script("release", full)
	s.admin = script("admin", full)
	s.read = script("read", full)
}

// inspect looks at the version and the settings of the server. INFO tells what is needed of
// them also where CONFIG is disabled, as with hosted servers.
func (s *Store) inspect(ctx context.Context) (major int, err error) {
	text, err := s.client.Info(ctx).Result()
	if err != nil {
		return 0, classed(err)
	}
	info := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		info[name] = value
	}
	minor := 0
	if parts := strings.SplitN(info["redis_version"], ".", 3); len(parts) > 1 {
		major, _ = strconv.Atoi(parts[0])
		minor, _ = strconv.Atoi(parts[1])
	}
	if major < 6 || major == 6 && minor < 2 {
		return 0, &locks.ValidationError{What: "store", Why: fmt.Sprintf("the Redis server has version %q: 6.2 or newer is needed", info["redis_version"])}
	}
	switch policy := info["maxmemory_policy"]; policy {
	case "noeviction":
	case "":
		s.warn("the Redis server does not tell its maxmemory-policy: see that it is noeviction, or two may hold a lock when the server is full")
	default:
		s.warn(fmt.Sprintf("the Redis server may evict locks when it is full (maxmemory-policy %q), and then two may hold one: set it to noeviction", policy))
	}
	switch info["aof_enabled"] {
	case "1":
	case "":
		s.warn("the Redis server does not tell whether it has an append-only file: without one it forgets locks when it is started again")
	default:
		s.warn("the Redis server has no append-only file: it forgets locks when it is started again, and then two may hold one. Set appendonly yes")
	}
	return major, nil
}

// Traits says that Redis can do everything.
func (s *Store) Traits() locks.Traits {
	return locks.Traits{Name: "redis", MinLease: 500 * time.Millisecond, Hints: true}
}

// Close has every later step fail, and ends the subscription, and the client if Open has made it.
// It releases no lock.
func (s *Store) Close() error {
	s.closed.Store(true)
	err := s.hints.close()
	if s.own != nil {
		err = errors.Join(err, s.own.Close())
	}
	return err
}
