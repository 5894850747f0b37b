// Package redisstore is a taskqueue.Store on a Redis server, for workers on many
// machines. Every step is one script, with the clock of the server.
//
// The server must be 6.2 or newer, must not evict keys (maxmemory-policy
// noeviction), and should have the append-only file on. The loss when it dies depends
// on its setting appendfsync: at most about a second of steps with everysec,
// nothing with always. After a failover to a replica what had not been replicated is
// lost.
package redisstore

import (
	"context"
	"embed"
	"log/slog"

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
// one that is too old, or evicts keys, is an error, and so is one on which a newer
// version of this package has stored tasks. One that is loading what it has stored is
// waited for until ctx is done. In a cluster it looks at every master. The client is not
// closed with the store.
//
// Set ContextTimeoutEnabled in the options of the client: without it a call on a
// connection that has gone silent does not end with its context, but with the
// ReadTimeout of the client, after all its retries. [taskqueue.Open] sets it.
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

// scripts are the steps.
type scripts struct{ enqueue, enqueueAfter, tick, claim, extend, settle, act, look, configure *script }

// load makes the scripts. Steps that free memory, or keep what is there, are allowed
// when the server is full, if it can be told so.
func load(flags bool) scripts {
	read := func(name string) string {
		text, err := files.ReadFile(name + ".lua")
		if err != nil {
			panic(err) // it is part of the program
		}
		return string(text)
	}
	step := func(name, line string) *script {
		return newScript(line + read("common") + "\n" + read("tasks") + "\n" + read("limits") + "\n" + read("after") + "\n" + read(name))
	}
	free, full := "#!lua\n", "#!lua flags=allow-oom\n"
	if !flags {
		// Before 7.0 a script may use memory of a server that is full when it has written
		// something that uses none.
		free, full = "", "redis.call('HDEL', KEYS[19], '')\n"
	}
	all := scripts{
		enqueue:      step("enqueue", free),
		enqueueAfter: step("enqueueafter", free),
		tick:         step("tick", free),
		claim:        step("claim", full),
		extend:       step("extend", full),
		settle:       step("settle", full),
		act:          step("act", full),
		look:         step("look", full),
		configure:    step("configure", full),
	}
	all.act.once, all.configure.once = true, true
	return all
}

var _ taskqueue.Store = (*Store)(nil)
