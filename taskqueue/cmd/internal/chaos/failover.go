//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// failover makes another server a replica, hands all over to it, and later back. For a
// while workers go on to ask the one that is a replica by now. Nothing may get lost:
// FAILOVER stops what writes until the replica has all.
func (r *redisWorld) failover(ctx context.Context, rng *rand.Rand) (bool, error) {
	dir := filepath.Join(r.dir, "replica")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	other, err := newServer(dir, dir, r.s.fsync, r.s.library)
	if err != nil {
		return false, err
	}
	defer func() {
		_ = other.client.Close()
		other.kill()
		_ = other.log.Close()
	}()
	if err := other.start(ctx); err != nil {
		return false, err
	}
	if err := other.follow(ctx, r.s); err != nil {
		return false, err
	}
	err = r.s.handOver(ctx, other)
	if err != nil {
		return false, errors.Join(err, other.stopFollowing(ctx))
	}
	rest(ctx, ms(rng, 1, 400))
	r.p.server.Store(&other.socket)
	r.p.reset()
	rest(ctx, ms(rng, 300, 1000))
	if err := other.handOver(ctx, r.s); err != nil {
		return false, err
	}
	rest(ctx, ms(rng, 1, 400))
	r.p.server.Store(&r.s.socket)
	r.p.reset()
	return true, other.stopFollowing(ctx)
}

// follow makes s a replica of master, and returns when it has all that master had.
func (s *server) follow(ctx context.Context, master *server) error {
	if err := s.client.Do(ctx, "REPLICAOF", "127.0.0.1", master.port).Err(); err != nil {
		return err
	}
	return s.await(ctx, "master_link_status:up")
}

func (s *server) stopFollowing(ctx context.Context) error {
	return s.client.Do(ctx, "REPLICAOF", "NO", "ONE").Err()
}

// handOver makes a replica of s the master, and s its replica.
func (s *server) handOver(ctx context.Context, replica *server) error {
	if err := s.await(ctx, "state=online"); err != nil {
		return err
	}
	if err := s.client.Do(ctx, "FAILOVER", "TO", "127.0.0.1", replica.port, "TIMEOUT", 20_000).Err(); err != nil {
		return err
	}
	return errors.Join(replica.await(ctx, "role:master"), s.await(ctx, "role:slave", "master_link_status:up"))
}

// await waits until INFO replication says all of that.
func (s *server) await(ctx context.Context, what ...string) error {
	var info string
	for late := time.Now().Add(time.Minute); time.Now().Before(late) && ctx.Err() == nil; rest(ctx, 10*time.Millisecond) {
		info, _ = s.client.Info(ctx, "replication").Result()
		all := true
		for _, w := range what {
			all = all && strings.Contains(info, w)
		}
		if all {
			return nil
		}
	}
	return fmt.Errorf("redis-server is to be %q: %s", what, info)
}
