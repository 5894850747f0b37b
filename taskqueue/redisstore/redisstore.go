// Package redisstore is a taskqueue.Store on a Redis server, for workers on many
// machines. Every step is one script, with the clock of the server.
//
// The server must be 6.2 or newer, must not evict keys (maxmemory-policy
// noeviction), and should have the append-only file on. What is lost when it dies
// depends on its setting appendfsync: at most about a second of steps with everysec,
// nothing with always. After a failover to a replica what had not been replicated is
// lost.
package redisstore

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ambit-go/ambit/taskqueue"
)

//go:embed *.lua
var files embed.FS

// An Option changes a store.
type Option func(*Store)

// Prefix is what all keys begin with. Defaults to "tq".
func Prefix(p string) Option { return func(s *Store) { s.prefix = p } }

// Warn has f told what is wrong with the settings of the server, and what to do.
// Defaults to a line of package log/slog for each.
func Warn(f func(text string)) Option { return func(s *Store) { s.warn = f } }

// New returns the store in the database that client uses. It looks at the server:
// one that is too old, or evicts keys, is an error. The client is not closed with
// the store.
func New(ctx context.Context, client redis.UniversalClient, opts ...Option) (*Store, error) {
	s := &Store{
		client: client,
		prefix: "tq",
		warn:   func(text string) { slog.Warn("taskqueue: " + text) },
	}
	for _, opt := range opts {
		opt(s)
	}
	major, err := s.inspect(ctx)
	if err != nil {
		return nil, err
	}
	s.scripts = load(major >= 7)
	s.hints.init(s)
	s.batches.init(s)
	return s, nil
}

func init() {
	for _, scheme := range []string{"redis", "rediss", "unix"} {
		taskqueue.Register(scheme, open)
	}
}

// options reads a URL. It may have a password, so what cannot be read is not repeated:
// a part of the password may be what looks wrong.
func options(text string) (*redis.Options, error) {
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" {
		return nil, &taskqueue.InvalidError{What: "store", Why: "the URL cannot be read: write it as redis://user:password@host:port/database; " +
			"in the password write what is neither a letter nor a digit as %XX, a slash as %2F"}
	}
	o, err := redis.ParseURL(text)
	if err != nil {
		return nil, &taskqueue.InvalidError{What: "store", Why: strings.TrimPrefix(err.Error(), "redis: ")}
	}
	return o, nil
}

// open returns the store at a URL of package go-redis, with a client of its own.
func open(ctx context.Context, text string) (taskqueue.Store, error) {
	o, err := options(text)
	if err != nil {
		return nil, err
	}
	client := redis.NewClient(o)
	s, err := New(ctx, client)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	s.own = client
	return s, nil
}

// scripts are the steps.
type scripts struct{ enqueue, tick, claim, extend, settle, act, look, configure *script }

// load makes the scripts. Steps that free memory, or keep what is there, are allowed
// when the server is full, if it can be told so.
func load(flags bool) scripts {
	common, err := files.ReadFile("common.lua")
	if err != nil {
		panic(err) // it is part of the program
	}
	step := func(name, line string) *script {
		body, err := files.ReadFile(name + ".lua")
		if err != nil {
			panic(err)
		}
		if !flags {
			line = ""
		}
		return newScript(line + string(common) + string(body))
	}
	const full = "#!lua flags=allow-oom\n"
	return scripts{
		enqueue:   step("enqueue", "#!lua\n"),
		tick:      step("tick", "#!lua\n"),
		claim:     step("claim", full),
		extend:    step("extend", full),
		settle:    step("settle", full),
		act:       step("act", full),
		look:      step("look", full),
		configure: step("configure", full),
	}
}

// inspect looks at the version and the settings of the server.
func (s *Store) inspect(ctx context.Context) (major int, err error) {
	info, err := s.client.Info(ctx, "server").Result()
	if err != nil {
		return 0, fmt.Errorf("taskqueue: the Redis server does not answer: %w", err)
	}
	version := field(info, "redis_version:")
	parts := strings.SplitN(version, ".", 3)
	minor := 0
	if len(parts) > 1 {
		major, _ = strconv.Atoi(parts[0])
		minor, _ = strconv.Atoi(parts[1])
	}
	if major < 6 || major == 6 && minor < 2 {
		return 0, fmt.Errorf("taskqueue: the Redis server has version %q: 6.2 or newer is needed", version)
	}
	switch policy := s.setting(ctx, "maxmemory-policy"); policy {
	case "noeviction":
	case "":
		s.warn("the server does not tell its maxmemory-policy: it must be noeviction, or tasks get lost")
	default:
		return 0, fmt.Errorf("taskqueue: the Redis server evicts keys when it is full (maxmemory-policy %s), and tasks would get lost: set it to noeviction", policy)
	}
	if s.setting(ctx, "appendonly") == "no" {
		s.warn("the server has no append-only file: what was enqueued is lost when it ends. Set appendonly yes")
	}
	return major, nil
}

func field(info, name string) string {
	_, rest, _ := strings.Cut(info, name)
	value, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(value)
}

// setting returns a setting of the server; "" if it does not tell.
func (s *Store) setting(ctx context.Context, name string) string {
	got, err := s.client.ConfigGet(ctx, name).Result()
	if err != nil {
		return ""
	}
	return got[name]
}

var _ taskqueue.Store = (*Store)(nil)
