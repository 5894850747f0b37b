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
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

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
type scripts struct{ enqueue, enqueueAfter, tick, claim, extend, settle, act, look, purge, configure *script }

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
		purge:        step("look", full), // which is not sent again
		configure:    step("configure", full),
	}
	all.act.once, all.purge.once, all.configure.once = true, true, true
	return all
}

var _ taskqueue.Store = (*Store)(nil)

// The client library writes to stderr that it cannot reach a server, though each call returns that.
// A logger that a program gives to redis.SetLogger takes the place of ours.
func init() { redis.SetLogger(quietLogger{log.New(os.Stderr, "redis: ", log.LstdFlags)}) }

// A quietLogger writes what the client library would write, but for failed dials.
type quietLogger struct{ log *log.Logger }

func (q quietLogger) Printf(_ context.Context, format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !strings.Contains(text, "failed to dial") {
		q.log.Print(text)
	}
}

// clients make a client for a URL of each scheme: of one server, of the master that sentinels know,
// and of a cluster.
//
//	redis://user:password@host:6379/0
//	redis+sentinel://user:password@sentinel1:26379/0?master_name=mymaster&addr=sentinel2:26379
//	redis+cluster://user:password@node1:6379?addr=node2:6379
//
// With rediss in place of redis it is TLS. The user and the password are those of the servers; those of
// sentinels are asked for nothing.
var clients = map[string]func(text string) (redis.UniversalClient, error){
	"redis": oneServer, "rediss": oneServer, "unix": oneServer,
	"redis+sentinel": sentinels, "rediss+sentinel": sentinels,
	"redis+cluster": aCluster, "rediss+cluster": aCluster,
}

func init() {
	for scheme := range clients {
		taskqueue.Register(scheme, open)
	}
}

// Without ContextTimeoutEnabled a call on a connection that has gone silent lasts as long as all that
// the client reads and tries again, whatever its context says.

func oneServer(text string) (redis.UniversalClient, error) {
	o, err := redis.ParseURL(text)
	if err != nil {
		return nil, err
	}
	o.ContextTimeoutEnabled = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(o), nil
}

func sentinels(text string) (redis.UniversalClient, error) {
	o, err := redis.ParseFailoverURL(text)
	if err == nil && o.MasterName == "" {
		err = errors.New("it names no master: add ?master_name=mymaster")
	}
	if err != nil {
		return nil, err
	}
	o.ContextTimeoutEnabled = true
	return redis.NewFailoverClient(o), nil
}

func aCluster(text string) (redis.UniversalClient, error) {
	o, err := redis.ParseClusterURL(text)
	if err != nil {
		return nil, err
	}
	o.ContextTimeoutEnabled = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClusterClient(o), nil
}

// newClient returns a client for a URL. It may have a password, so what cannot be read is not repeated:
// a part of the password may be what looks wrong.
func newClient(text string) (redis.UniversalClient, error) {
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" {
		return nil, &taskqueue.InvalidError{What: "store", Why: "the URL cannot be read: write it as redis://user:password@host:port/database; " +
			"in the password write what is neither a letter nor a digit as %XX, a slash as %2F"}
	}
	_, kind, _ := strings.Cut(u.Scheme, "+")
	client, err := clients[u.Scheme](strings.Replace(text, "+"+kind+":", ":", 1))
	if err != nil {
		return nil, &taskqueue.InvalidError{What: "store", Why: strings.TrimPrefix(err.Error(), "redis: ")}
	}
	return client, nil
}

// open returns the store at a URL, with a client of its own.
func open(ctx context.Context, text string) (taskqueue.Store, error) {
	client, err := newClient(text)
	if err != nil {
		return nil, err
	}
	s, err := New(ctx, client)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	s.own = client
	return s, nil
}
