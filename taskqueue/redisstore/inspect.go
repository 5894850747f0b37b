package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ambit-go/ambit/async"
)

// format is the newest version of what is stored that this program knows. The server knows that of
// what it has.
const format = 2

// plainFormat is the version of what is stored until there is the first limit or LimitKey, or a task waits for others.
const plainFormat = 1

func (s *Store) formatKey() string { return s.prefix + ":format" }

// inspect looks at the versions and the settings of the servers, and returns the least
// major version.
func (s *Store) inspect(ctx context.Context) (major int, err error) {
	var mu sync.Mutex
	major = 1 << 20
	err = s.eachServer(ctx, func(ctx context.Context, server *redis.Client) error {
		mu.Lock() // several are asked at a time
		defer mu.Unlock()
		one, err := s.inspectOne(ctx, server)
		major = min(major, one)
		return err
	})
	if err == nil {
		err = s.checkFormat(ctx)
	}
	return major, err
}

// eachServer calls f with each server that takes writes, several at a time. With another
// client than those of go-redis it asks the one that the client finds.
func (s *Store) eachServer(ctx context.Context, f func(context.Context, *redis.Client) error) error {
	switch c := s.client.(type) {
	case *redis.Client:
		return f(ctx, c)
	case *redis.ClusterClient:
		return c.ForEachMaster(ctx, f)
	case *redis.Ring:
		return c.ForEachShard(ctx, f)
	}
	return f(ctx, nil)
}

func (s *Store) inspectOne(ctx context.Context, server *redis.Client) (major int, err error) {
	var of redis.Cmdable = s.client
	if server != nil {
		of = server
	}
	if err := s.awaitLoaded(ctx, of); err != nil {
		return 0, err
	}
	info, err := of.Info(ctx, "server").Result()
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
	switch policy := setting(ctx, of, "maxmemory-policy"); policy {
	case "noeviction":
	case "":
		s.warn("the server does not tell its maxmemory-policy: it must be noeviction, or tasks get lost")
	default:
		return 0, fmt.Errorf("taskqueue: the Redis server evicts keys when it is full (maxmemory-policy %s), and tasks would get lost: set it to noeviction", policy)
	}
	if setting(ctx, of, "appendonly") == "no" {
		s.warn("the server has no append-only file: what was enqueued is lost when it ends. Set appendonly yes")
	}
	return major, nil
}

// awaitLoaded waits until a server has loaded what it has stored, or ctx is done.
func (s *Store) awaitLoaded(ctx context.Context, server redis.Cmdable) error {
	for told := false; ; {
		info, err := server.Info(ctx, "persistence").Result()
		switch {
		case err != nil:
			return fmt.Errorf("taskqueue: the Redis server does not answer: %w", err)
		case field(info, "\nloading:") != "1":
			return nil
		case !told:
			s.warn("the server is loading what it has stored: waiting for that")
			told = true
		}
		if async.Sleep(ctx, 50*time.Millisecond) != nil {
			return fmt.Errorf("taskqueue: the Redis server is still loading what it has stored, try again when it has: %w", context.Cause(ctx))
		}
	}
}

// checkFormat refuses what a newer version has stored.
func (s *Store) checkFormat(ctx context.Context) error {
	text, err := s.client.Get(ctx, s.formatKey()).Result()
	if errors.Is(err, redis.Nil) {
		return nil // nothing is stored yet
	}
	if err != nil {
		return fmt.Errorf("taskqueue: redis: %w", err)
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return fmt.Errorf("taskqueue: the key %s is one of another program: use redisstore.Prefix", s.formatKey())
	case n > format:
		return fmt.Errorf("taskqueue: what the Redis server has stored has format %d, and this program knows formats up to %d: use a newer program, as the one which has stored it", n, format)
	}
	return nil
}

func field(info, name string) string {
	_, rest, _ := strings.Cut(info, name)
	value, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(value)
}

// setting returns a setting of the server; "" if it does not tell.
func setting(ctx context.Context, server redis.Cmdable, name string) string {
	got, err := server.ConfigGet(ctx, name).Result()
	if err != nil {
		return ""
	}
	return got[name]
}
