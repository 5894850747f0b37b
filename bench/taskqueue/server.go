package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/redisstore"
)

// A server is a Redis server of our own, in a folder that is removed with it.
type server struct {
	dir    string
	socket string
	cmd    *exec.Cmd
	admin  *redis.Client
}

func startServer(ctx context.Context) *server {
	dir, err := os.MkdirTemp("", "taskqueue")
	must(err)
	s := &server{dir: dir, socket: filepath.Join(dir, "redis.sock")}
	s.cmd = exec.Command("redis-server", "--port", "0", "--unixsocket", s.socket, "--dir", dir, "--loglevel", "warning",
		"--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0", "--save", "")
	s.cmd.Stderr = os.Stderr
	must(s.cmd.Start())
	s.admin = s.client()
	for s.admin.Ping(ctx).Err() != nil && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	return s
}

func (s *server) client() *redis.Client {
	return redis.NewClient(&redis.Options{Network: "unix", Addr: s.socket, ReadTimeout: time.Minute})
}

// stop ends the server that was started, and removes its folder.
func (s *server) stop() {
	_ = s.admin.Close()
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = os.RemoveAll(s.dir)
}

// empty deletes all that is stored.
func (s *server) empty(ctx context.Context) { must(s.admin.FlushAll(ctx).Err()) }

// info returns a field of the command INFO.
func (s *server) info(ctx context.Context, section, field string) string {
	text, err := s.admin.Info(ctx, section).Result()
	must(err)
	_, rest, _ := strings.Cut(text, field+":")
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}

func (s *server) version(ctx context.Context) string { return s.info(ctx, "server", "redis_version") }

// memory returns how many bytes the data takes.
func (s *server) memory(ctx context.Context) float64 {
	n, err := strconv.ParseFloat(s.info(ctx, "memory", "used_memory_dataset"), 64)
	must(err)
	return n
}

// ambit returns our queue on the server, emptied, and what gives it back.
func (s *server) ambit(ctx context.Context) (*taskqueue.Queue, func()) {
	s.empty(ctx)
	client := s.client()
	store, err := redisstore.New(ctx, client)
	must(err)
	q, err := taskqueue.New(store)
	must(err)
	return q, func() {
		must(store.Close())
		must(client.Close())
	}
}

func (s *server) asynq() asynq.RedisClientOpt {
	return asynq.RedisClientOpt{Network: "unix", Addr: s.socket}
}

// asynqClient returns a client of asynq on the server, emptied, and what gives it back.
func (s *server) asynqClient(ctx context.Context) (*asynq.Client, func()) {
	s.empty(ctx)
	c := asynq.NewClient(s.asynq())
	return c, func() { must(c.Close()) }
}

// asynqServer starts a server of asynq, with the settings that it has if nothing is
// said, and returns what stops it.
func (s *server) asynqServer(concurrency int, handle func(*asynq.Task)) func() {
	srv := asynq.NewServer(s.asynq(), asynq.Config{Concurrency: concurrency, LogLevel: asynq.FatalLevel})
	must(srv.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		handle(t)
		return nil
	})))
	return srv.Shutdown
}

var payload = []byte(strings.Repeat("x", 100))
